// The primary contexts, the stack of current contexts, and access to peers. Other contexts (cuCtxCreate) are not emulated.
#include "tools/emulated_gpu/device/contexts.h"

#include <vector>

#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {
thread_local std::vector<CUcontext> below;  // contexts under the current one

bool Known(CUcontext context) { return context == nullptr || DeviceOfContext(context) >= 0; }
}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  RetainPrimary(device);
  *context = PrimaryContext(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  ReleasePrimary(device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = PrimaryActive(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  WEIR_DRIVER_NEEDS_INIT();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = Current();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  WEIR_DRIVER_NEEDS_INIT();
  if (!Known(context)) return CUDA_ERROR_INVALID_CONTEXT;
  SetCurrent(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  WEIR_DRIVER_NEEDS_INIT();
  if (context == nullptr || !Known(context)) return CUDA_ERROR_INVALID_CONTEXT;
  below.push_back(Current());
  SetCurrent(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (context != nullptr) *context = Current();
  SetCurrent(below.empty() ? nullptr : below.back());
  if (!below.empty()) below.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = CurrentDevice();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return SynchronizeDevice(CurrentDevice());
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (DeviceOfContext(peer) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return EnablePeer(CurrentDevice(), DeviceOfContext(peer));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (DeviceOfContext(peer) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return DisablePeer(CurrentDevice(), DeviceOfContext(peer));
}
