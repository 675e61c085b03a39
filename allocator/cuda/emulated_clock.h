// The virtual clock of an emulated GPU that stands behind the driver (tools/emulated_gpu/device/clock_abi.h). Any thread.
#ifndef WEIR_ALLOCATOR_CUDA_EMULATED_CLOCK_H_
#define WEIR_ALLOCATOR_CUDA_EMULATED_CLOCK_H_

#include <cstdint>

namespace weir {

// The calling thread's time in ns. Asking takes none.
using EmulatedNow = int64_t (*)();

// After OpenDriver(). Null with a real GPU.
EmulatedNow EmulatedClock();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_CUDA_EMULATED_CLOCK_H_
