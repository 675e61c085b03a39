// Weir as torch's CUDA allocator: a complete CUDAAllocator over the core.
//
// Any thread, with or without the GIL. Sizes are bytes. Failing allocations throw c10::OutOfMemoryError in
// torch's own words; what Weir does not have yet throws NotImplementedError that names it. Freeing never
// throws and works after CUDA is gone and at interpreter exit; the object is never destroyed.
#ifndef WEIR_PYTORCH_PLUGIN_ALLOCATOR_ADAPTER_H_
#define WEIR_PYTORCH_PLUGIN_ALLOCATOR_ADAPTER_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>

namespace weir::plugin {

// Puts Weir in place of torch's native allocator: in the allocator that CUDA code asks, and in the one that
// torch.accelerator asks. Before CUDA starts. False: another allocator is already in use, and it stays.
bool InstallAllocator();

// The job named another allocator (CUDAPluggableAllocator) before Weir was loaded.
bool PluggableIsCurrent();

// Says once if the job has put another allocator in Weir's place since, which torch allows until CUDA starts and tells nobody.
// The job goes on with that one, unless Weir is required. For ops that touch a CUDA tensor: by the first of them it is known
// whether the other allocator's blocks are Weir's. Two loads.
void NoteReplacement();
// They are: the job named Weir by CUDAPluggableAllocator although it was in place.
void AcceptReplacement();

// Block of `bytes` on `device` for `stream`; 0 bytes give nullptr. Throws c10::OutOfMemoryError.
void* AllocateBlock(int device, uint64_t bytes, void* stream);
// Never throws. False: the address is not Weir's.
bool FreeBlock(void* address) noexcept;

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_ALLOCATOR_ADAPTER_H_
