// Whether memory that is mapped is also in use: an allocator that keeps freed memory mapped can be asked. Weir's core is
// (`weir_life_of` of libweir_core.so, found by name when addresses are reserved); no other is. Any thread; the caller
// holds no lock of the emulator, for the allocator may hold its own while it calls the driver.
#ifndef WEIR_EMULATED_GPU_DEVICE_LIVE_BLOCKS_H_
#define WEIR_EMULATED_GPU_DEVICE_LIVE_BLOCKS_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// As the allocator answers. kNotAsked: of no allocator that can be asked. kEnd: in no block, but one past the last byte of
// one; only pointers are that, not ranges.
enum class Life : int { kNotAsked, kAlive, kEnd, kDead };

// Looks for the allocator. Called when a range of addresses was reserved: it is in the process by then.
void FindAllocator();

Life LifeOfRange(uintptr_t begin, size_t size);
Life LifeOfPointer(uintptr_t address);

}  // namespace weir::emulated

#endif
