// Memory pools and stream-ordered allocation (cuMemAllocAsync, cuMemFreeAsync). Any thread; their lock comes with those of
// memory.cc and vmm.cc in the order of locks, before memory.cc's. Bytes.
//
// Memory is there for work that comes after the allocation and before the free, in the order of streams. Both count as
// writes of the whole block, so that what is not ordered between them is a report (order.h); what is enqueued after the call
// of the free is one too, as for any memory that is gone. A freed range is taken again by a stream for which its free is in
// the past, or is known to be complete, or else by one that is made to wait for it: the three REUSE attributes.
// What nobody uses above the release threshold goes back to the device when the host waits for work.
#ifndef WEIR_EMULATED_GPU_DEVICE_POOLS_H_
#define WEIR_EMULATED_GPU_DEVICE_POOLS_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

// The default pool of `device`, and the one that allocations without a pool take.
Status DefaultPool(CUmemoryPool* handle, int device);
Status CurrentPool(CUmemoryPool* handle, int device);
Status SetCurrentPool(int device, CUmemoryPool handle);

Status CreatePool(CUmemoryPool* handle, const CUmemPoolProps& properties);
Status DestroyPool(CUmemoryPool handle);  // its memory stays until it is freed
// Gives back what nobody uses until `keep` bytes are left.
Status TrimPool(CUmemoryPool handle, size_t keep);
// `value`: an int or a cuuint64_t, as the attribute has it.
Status SetPoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value);
Status PoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value);
Status SetPoolAccess(CUmemoryPool handle, const CUmemAccessDesc* accesses, size_t count);
Status PoolAccess(CUmemAccess_flags* flags, CUmemoryPool handle, const CUmemLocation& location);

// `handle` null: the current pool of the stream's device.
Status AllocateAsync(uintptr_t* address, size_t size, CUmemoryPool handle, CUstream stream);
Status FreeAsync(uintptr_t address, CUstream stream);

// ---- for the other files of the device
// A block of a pool whose device has done all its work (cuMemFree).
void FreeToPool(uintptr_t address);
// Whether kernels of `device` may touch a pool's memory.
struct Pool;
bool PoolReaches(const Pool& pool, int device);
// The host has waited for work.
void ReleaseUnusedPools();

}  // namespace weir::emulated

#endif
