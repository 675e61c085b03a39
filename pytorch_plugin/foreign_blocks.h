// Blocks of an allocator that the job put into a memory pool (torch.cuda.MemPool(allocator)): NCCL's, managed memory, ...
//
// Each block is one allocation of that allocator; a freed one is kept for the next block of the pool that it is large enough
// for and not twice too large. They are no frames of Weir's and never leave. Their bytes count under the cap (weir_take_outside)
// from the allocation until the allocator has them back: after the pool's end, when room is needed or torch empties its
// cache. Any thread; `device`: the CUDA ordinal; bytes. The allocator is called with no lock of Weir's held.
#ifndef WEIR_PYTORCH_PLUGIN_FOREIGN_BLOCKS_H_
#define WEIR_PYTORCH_PLUGIN_FOREIGN_BLOCKS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>
#include <memory>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {

// The allocator of one pool. Fields but the first two are guarded by the mutex of foreign_blocks.cc.
struct ForeignSource {
  int device;
  std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator> allocator;
  bool lends = false;  // its free blocks serve others when nothing else is left (use_on_oom)
  bool ended = false;  // the pool has
};

// Null and *error: no room under the cap, or the allocator gave nothing. Throws what the allocator throws.
void* AllocateForeign(const std::shared_ptr<ForeignSource>& source, uint64_t bytes, cudaStream_t stream,
                      WeirError* error);
// A free block of a pool that lends, used on `stream` before; null: there is none.
void* BorrowForeign(int device, uint64_t bytes, cudaStream_t stream);
void SetLends(ForeignSource& source, bool lends);
void EndSource(ForeignSource& source);

// False, or nothing happens: no block of such an allocator.
bool FreeForeign(void* address) noexcept;
void RecordForeign(void* address, cudaStream_t stream);
bool FindForeign(const void* address, void** base, uint64_t* bytes);

// Gives the free blocks of ended pools back to their allocators, once the device has passed all that is queued. True: any.
bool ReturnForeign(int device) noexcept;

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_FOREIGN_BLOCKS_H_
