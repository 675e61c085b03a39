// Address ranges of device memory: large PROT_NONE windows from which ranges are given out. Any thread.
// Everything that is device memory lies in a window, so asking "is this a device address" is two compares.
#ifndef WEIR_EMULATED_GPU_DEVICE_ADDRESSES_H_
#define WEIR_EMULATED_GPU_DEVICE_ADDRESSES_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

inline constexpr size_t kGranularity = size_t{2} << 20;  // of VMM ranges; research/cuda-facts.md

// A free range of `size` bytes (a multiple of kGranularity) aligned to `alignment` (a power of two), 0 when
// there is none. `hint` is taken if that range is free. The range stays PROT_NONE. Freed ranges are reused as
// late as possible.
uintptr_t TakeAddresses(size_t size, size_t alignment, uintptr_t hint);
// Makes the range PROT_NONE again and gives it back.
void ReturnAddresses(uintptr_t address, size_t size);
// PROT_NONE again, contents gone; false when the kernel has no room for one more mapping.
bool MakeInaccessible(uintptr_t address, size_t size);

// Lock-free; callable from a signal handler.
bool InDeviceWindow(uintptr_t address);
// In a part of a window that was given out at least once. Lock-free.
bool WasEverTaken(uintptr_t address);

}  // namespace weir::emulated

#endif
