// Kernels `none`: what a launch was given is checked against what is mapped. Any 8-byte word of a parameter, members of
// structs included, that is an address of the device counts as a pointer; the ABI aligns pointers to 8 bytes. Words that
// may be leftovers of the host's stack (argument_words.h) count only when they lie in a tensor of an op that is running.
//
// A pointer to memory that kernels may not touch, or in no live block (live_blocks.h), is a report. One past the end of a
// cudaMalloc or cuMemAlloc allocation is fine: ranges have ends; so is the end of a block that another pointer of the launch
// leads into. Not so for mappings, where the next begins right there.
// Not seen: pointers in tables that lie in device memory, TMA descriptors, 32-bit offsets from a base.
#ifndef WEIR_EMULATED_GPU_DEVICE_LAUNCH_ARGUMENTS_H_
#define WEIR_EMULATED_GPU_DEVICE_LAUNCH_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/kernels.h"

namespace weir::emulated {

// As the caller passed them: the address of each argument, or one buffer laid out as the kernel wants it.
struct Arguments {
  void* const* each = nullptr;
  const void* buffer = nullptr;
  size_t buffer_size = 0;
};

// The pointers that may be used, in a list of this thread that holds until its next call. A kernel whose parameters are
// not known has none; that is told once per reason and counted (Counters::unchecked_launches).
struct ArgumentPointers {
  const uintptr_t* first = nullptr;
  size_t count = 0;
};
// `grid_x` and `grid_y` are those of the launch.
ArgumentPointers CheckArguments(const Kernel& kernel, const Arguments& arguments, unsigned grid_x,
                                unsigned grid_y);

}  // namespace weir::emulated

#endif
