// Memory pools and stream-ordered allocation.
#include "tools/emulated_gpu/device/pools.h"

#include "tools/emulated_gpu/driver/driver.h"

using namespace weir::emulated;

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return DefaultPool(pool, device);
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  WEIR_DRIVER_NEEDS_INIT();
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CurrentPool(pool, device);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  WEIR_DRIVER_NEEDS_INIT();
  return SetCurrentPool(device, pool);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  WEIR_DRIVER_NEEDS_INIT();
  if (pool == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CreatePool(pool, *properties);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  WEIR_DRIVER_NEEDS_INIT();
  return DestroyPool(pool);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  WEIR_DRIVER_NEEDS_INIT();
  return TrimPool(pool, keep);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WEIR_DRIVER_NEEDS_INIT();
  return SetPoolAttribute(pool, attribute, value);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WEIR_DRIVER_NEEDS_INIT();
  return PoolAttribute(pool, attribute, value);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* accesses, size_t count) {
  WEIR_DRIVER_NEEDS_INIT();
  return SetPoolAccess(pool, accesses, count);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  WEIR_DRIVER_NEEDS_INIT();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return PoolAccess(flags, pool, *location);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t found = 0;
  const Status status = AllocateAsync(&found, size, nullptr, stream);
  *address = found;
  return status;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  if (address == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t found = 0;
  const Status status = AllocateAsync(&found, size, pool, stream);
  *address = found;
  return status;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  WEIR_DRIVER_NEEDS_CONTEXT();
  return FreeAsync(address, stream);
}
