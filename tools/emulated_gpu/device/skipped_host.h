// Kernels `none`: large tensors of the CPU that a job fills with random numbers, mostly a model that is moved to the card
// then. Their pages stay untouched and cost no RAM; they read as zeros, and on the card they are not known. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_SKIPPED_HOST_H_
#define WEIR_EMULATED_GPU_DEVICE_SKIPPED_HOST_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// The functions of torch_abi.h. Private memory that `op` would have filled; the first time a line says so.
void SkipHostBytes(const char* op, uintptr_t begin, size_t size);
// Zeros, as the program asked for.
void ZeroHostBytes(uintptr_t begin, size_t size);
// Whether all of it was skipped, and nobody wrote to it since.
int AreHostBytesSkipped(uintptr_t begin, size_t size);

}  // namespace weir::emulated

#endif
