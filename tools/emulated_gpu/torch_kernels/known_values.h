// Kernels `none`: values that may decide a shape or a branch are computed. An aten op whose CUDA arguments are small and
// known as a whole runs twice: torch's own CUDA code (memory, launches and time as on a card), then its CPU kernel over the same
// bytes, whose results take the place of those that nothing computed. Random numbers follow the seed and are others
// than a card's.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_KNOWN_VALUES_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_KNOWN_VALUES_H_

#include <cstddef>

namespace weir::emulated {

// The largest tensors that are computed, in bytes of their elements: of integers and booleans, of all others.
inline constexpr size_t kMostIntegerBytes = size_t{4} << 20, kMostOtherBytes = size_t{64} << 10;

// Wraps the CUDA kernels of all such ops; once, before CUDA starts.
void ComputeKnownValues();

}  // namespace weir::emulated

#endif
