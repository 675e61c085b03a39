// Kernels `none` only: which device bytes the host wrote itself, so that reading them back gives them, and
// reading what a kernel would have computed gives zeros (a loss is 0.0, a count is 0) instead of leftovers.
// Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_KNOWN_BYTES_H_
#define WEIR_EMULATED_GPU_DEVICE_KNOWN_BYTES_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// A copy from the host or a memset wrote the range.
void RememberWritten(uintptr_t address, size_t size);
// A copy from unknown bytes wrote it, or it was unmapped.
void ForgetWritten(uintptr_t address, size_t size);
// Written by the host as a whole. A value of up to kScalarBytes counts only while no kernel was launched
// since: such small blocks are reused at once, by results of kernels above all.
inline constexpr size_t kScalarBytes = 16;
bool IsKnown(uintptr_t address, size_t size);

}  // namespace weir::emulated

#endif
