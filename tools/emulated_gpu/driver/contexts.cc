// The primary contexts, the stack of current contexts, and access to peers. Other contexts (cuCtxCreate) are not emulated.
#include "tools/emulated_gpu/device/contexts.h"

#include <atomic>
#include <vector>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

namespace {
thread_local std::vector<CUcontext> below;  // contexts under the current one

// Stack of a thread, printf's buffer, malloc's heap: the defaults of the CUDA C++ programming guide.
struct Limits {
  std::atomic<size_t> values[CU_LIMIT_MAX];
  Limits() {
    values[CU_LIMIT_STACK_SIZE] = 1024;
    values[CU_LIMIT_PRINTF_FIFO_SIZE] = size_t{1} << 20;
    values[CU_LIMIT_MALLOC_HEAP_SIZE] = size_t{8} << 20;
  }
  std::atomic<size_t>& operator[](CUlimit limit) { return values[limit]; }
};
Limits limits[kMostDevices];

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

// What kernels would need; they take what the device gives.
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = limits[CurrentDevice()][limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  limits[CurrentDevice()][limit] = value;
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
