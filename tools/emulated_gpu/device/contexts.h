// The primary context of each device, which one is current on a thread, and which may reach the memory of which other. Devices
// are numbered as CUDA shows them (CUDA_VISIBLE_DEVICES). Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_CONTEXTS_H_
#define WEIR_EMULATED_GPU_DEVICE_CONTEXTS_H_

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

int DeviceCount();
bool IsDevice(int device);
// Its number among all devices of WEIR_GPU, as accounting.h and NVML count.
int PhysicalDevice(int device);

// Other contexts (cuCtxCreate) are not emulated.
CUcontext PrimaryContext(int device);
// The device of a primary context, -1 if it is none.
int DeviceOfContext(CUcontext context);

bool PrimaryActive(int device);
void RetainPrimary(int device);
void ReleasePrimary(int device);
// cudart does not count: the context is there from now on.
void ActivatePrimary(int device);

// Of this thread, null when it has none.
CUcontext Current();
void SetCurrent(CUcontext context);
// The device of the current context, 0 when there is none.
int CurrentDevice();

// Whether the hardware lets `device` reach the memory of `peer`. Never true for one device.
bool CanAccessPeer(int device, int peer);
// Kernels of `device` may touch memory of `peer` that cudaMalloc gave. The driver's errors.
Status EnablePeer(int device, int peer);
Status DisablePeer(int device, int peer);
bool PeerEnabled(int device, int peer);

// The driver's attributes of a pair of devices.
Status PeerAttribute(int* value, CUdevice_P2PAttribute attribute, int device, int peer);

}  // namespace weir::emulated

#endif
