// The RAM of the host of an emulated GPU behind the driver (tools/emulated_gpu/device/host_ram_abi.h). Any thread.
#ifndef WEIR_ALLOCATOR_CUDA_EMULATED_HOST_H_
#define WEIR_ALLOCATOR_CUDA_EMULATED_HOST_H_

#include "allocator/base/units.h"

namespace weir {

// After OpenDriver(). Zero with a real GPU, and where pinned memory is this machine's RAM.
Bytes EmulatedHostRam();

}  // namespace weir

#endif  // WEIR_ALLOCATOR_CUDA_EMULATED_HOST_H_
