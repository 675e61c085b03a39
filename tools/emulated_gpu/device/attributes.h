// Numbers about the device, as both doubles give them. Attribute numbers are the same in cudart and in the
// driver.
#ifndef WEIR_EMULATED_GPU_DEVICE_ATTRIBUTES_H_
#define WEIR_EMULATED_GPU_DEVICE_ATTRIBUTES_H_

#include <cstddef>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

inline constexpr int kDriverVersion = 13020;  // of the headers this is built against: CUDA 13.2

Status DeviceAttribute(int* value, CUdevice_attribute attribute);
// As the driver prints it.
void DeviceName(char* text, size_t room);
// 16 bytes, the same in every process. Devices here are physical.
void DeviceUuid(char* bytes, int device);
// "0000:BUS:00.0", at least 13 bytes.
void DevicePciAddress(char* text, size_t room, int device);
// Whether a kernel on one device may be let at the memory of another.
bool HasPeers();

}  // namespace weir::emulated

#endif
