// Pages of host memory that hold nothing: a range that nobody touched costs nothing and reads as zeros. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_PAGES_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// The range reads as zeros from now on; its whole pages go back to the system. Private memory only.
void DropPages(uintptr_t begin, size_t size);

// Whether the range is zeros. Pages that nobody touched stay so. False when the system does not tell which those are
// (/proc/self/pagemap).
bool AreZeros(uintptr_t begin, size_t size);

}  // namespace weir::emulated

#endif
