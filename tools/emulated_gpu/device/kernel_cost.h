// How long kernels and copies take: what they do, over the rates of the profile. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_KERNEL_COST_H_
#define WEIR_EMULATED_GPU_DEVICE_KERNEL_COST_H_

#include <cstddef>

#include "tools/emulated_gpu/device/engines.h"
#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {

// The work of a kernel, without what every kernel takes: its operations at the peak of their type or its bytes at the
// bandwidth of the device's memory, whichever takes longer.
Nanos WorkTime(const WeirEmulatedWork& work);

// `kernels` kernels one after the other that do `work` in all.
Demand KernelDemand(size_t kernels, const WeirEmulatedWork& work = {});

// Where the bytes of a copy go. kInside: both ends on the device; kPeer: from it to another one, over the link to the host,
// for profiles have no other.
enum class Route { kIn, kOut, kInside, kPeer };
Demand CopyDemand(Route route, size_t bytes, bool pageable);
Demand FillDemand(size_t bytes);

}  // namespace weir::emulated

#endif
