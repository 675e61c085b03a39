// Pages of host memory that hold nothing: a range that nobody touched costs nothing and reads as zeros. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_HOST_PAGES_H_
#define WEIR_EMULATED_GPU_DEVICE_HOST_PAGES_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// The range reads as zeros from now on; its whole pages go back to the system. Private memory only.
void DropPages(uintptr_t begin, size_t size);

// Whether nothing was read or written in the whole pages of the range; true when it has none. False when the system does
// not tell (/proc/self/pagemap).
bool ArePagesUntouched(uintptr_t begin, size_t size);

}  // namespace weir::emulated

#endif
