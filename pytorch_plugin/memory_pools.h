// torch's memory pools (torch.cuda.MemPool): who is allocating into which, and until when a pool lives.
//
// A pool lives while its use count is not zero: its MemPool object and each open use_mem_pool count. What its blocks leave
// serves its blocks alone; at its end the memory is the general heap's and the blocks that are alive stay valid.
// Functions may be called from any thread, with or without the GIL, and throw c10::Error for a pool that is not there.
// `device`: the CUDA ordinal; a pool's id means another pool on another device.
#ifndef WEIR_PYTORCH_PLUGIN_MEMORY_POOLS_H_
#define WEIR_PYTORCH_PLUGIN_MEMORY_POOLS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {

using PoolFilter = std::function<bool(cudaStream_t)>;

// A MemPool begins, or one more user of it. `allocator`: where its bytes come from (foreign_blocks.h); null or Weir's own:
// Weir.
void CreateOrRetainPool(int device, c10::MempoolId_t id,
                        std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator> allocator);
// One user less; the last one ends the pool. Ending never fails and never waits.
void ReleasePool(int device, c10::MempoolId_t id);
// 0: there is no such pool.
int PoolUses(int device, c10::MempoolId_t id);
// Each block in memory of its own; so is every block of another allocator.
void SetBlocksApart(int device, c10::MempoolId_t id);
// The pool's free memory serves allocations outside when nothing else is left. Of a pool of Weir's own it does anyway: idle
// frames move to whoever needs them.
void SetUseOnOom(int device, c10::MempoolId_t id, bool use);

// From now on allocations of `device` for streams that `filter` accepts come from the pool, which has one more user. The
// filter is asked in the allocating thread. Of several open pools the one that was opened last wins.
// A filter that does not accept the calling thread's own stream is that of a graph's capture: refused.
void OpenPool(int device, c10::MempoolId_t id, PoolFilter filter);
// Ends the last one that the calling thread's stream was accepted by, else the last one of that pool.
void ClosePool(int device, c10::MempoolId_t id);

// Out of the pool that is open for this thread and stream; else out of the general heap. Null and *error: why not.
void* AllocateFromPools(int device, uint64_t bytes, void* stream, WeirError* error);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_MEMORY_POOLS_H_
