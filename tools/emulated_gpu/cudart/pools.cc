// Memory pools and stream-ordered allocation. Handles and attributes are those of the driver.
#include "tools/emulated_gpu/device/pools.h"

#include "tools/emulated_gpu/cudart/cudart.h"

using namespace weir::emulated;

static_assert(static_cast<int>(cudaMemPoolAttrUsedMemHigh) == CU_MEMPOOL_ATTR_USED_MEM_HIGH);
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (pool == nullptr) return Last(cudaErrorInvalidValue);
  return Last(DefaultPool(pool, device));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(TrimPool(pool, keep));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(SetPoolAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(PoolAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, size_t count) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(SetPoolAccess(pool, reinterpret_cast<const CUmemAccessDesc*>(accesses), count));
}

cudaError_t cudaMallocAsync(void** address, size_t size, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (address == nullptr) return Last(cudaErrorInvalidValue);
  uintptr_t found = 0;
  const Status status = AllocateAsync(&found, size, nullptr, stream);
  *address = reinterpret_cast<void*>(found);
  return Last(status);
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return Last(FreeAsync(reinterpret_cast<uintptr_t>(address), stream));
}

// Memory that graphs hold: none, for a capture refuses to allocate.
cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void* value) {
  WEIR_CUDART_NEEDS_CONTEXT();
  if (value == nullptr) return Last(cudaErrorInvalidValue);
  *static_cast<unsigned long long*>(value) = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  WEIR_CUDART_NEEDS_CONTEXT();
  return cudaSuccess;
}
