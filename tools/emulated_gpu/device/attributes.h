// Numbers about the device, as both doubles give them. Attribute numbers are the same in cudart and in the
// driver.
#ifndef WEIR_EMULATED_GPU_DEVICE_ATTRIBUTES_H_
#define WEIR_EMULATED_GPU_DEVICE_ATTRIBUTES_H_

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

inline constexpr int kDriverVersion = 13020;  // of the headers this is built against: CUDA 13.2

Status DeviceAttribute(int* value, CUdevice_attribute attribute);
// 16 bytes, the same in every process.
void DeviceUuid(char* bytes);

}  // namespace weir::emulated

#endif
