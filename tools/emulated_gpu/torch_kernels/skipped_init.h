// Kernels `none`: random initialisation of large CPU tensors is skipped (device/skipped_host.h), and with it what works on
// those numbers in place and what copies them on the CPU. Zeros are zeros: fresh pages.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_SKIPPED_INIT_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_SKIPPED_INIT_H_

#include <cstddef>

namespace weir::emulated {

// Tensors of this many bytes and more.
inline constexpr size_t kFewestSkippedBytes = size_t{64} << 20;

// Wraps the CPU kernels; once, while torch is imported and no op runs.
void SkipInitialisation();

}  // namespace weir::emulated

#endif
