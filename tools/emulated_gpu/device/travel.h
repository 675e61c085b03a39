// Which bytes of a copy or memset move. With kernels `cpu` all do. With kernels `none` those that are known do
// (known_bytes.h), so that the host reads back what it wrote; the others read as zeros, and untouched memory costs none.
// Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_TRAVEL_H_
#define WEIR_EMULATED_GPU_DEVICE_TRAVEL_H_

#include <cstddef>
#include <vector>

#include "tools/emulated_gpu/device/transfers.h"

namespace weir::emulated {

// What the host brings to the device is known up to these sizes; of integers and booleans, which decide shapes, more.
inline constexpr size_t kMovedBytes = size_t{64} << 10, kMovedIntegers = size_t{4} << 20;

// An end of a copy.
enum class Side { kDevice, kPinned, kPageable };
Side SideOf(const void* address);

// What moves of a copy, and notes what is known at its destination. A read of unknown bytes by the host is noted
// (value_reads.h): the caller holds no lock.
std::vector<Transfer> TravelOfCopy(void* to, const void* from, const Rows& rows);
// The same of a memset; as Fill in copies.h.
std::vector<Transfer> TravelOfFill(void* to, unsigned value, size_t element, const Rows& rows);

}  // namespace weir::emulated

#endif
