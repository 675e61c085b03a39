// Virtual memory management: reservations, frames (physical handles) and mappings over one memfd. Any thread.
// Rules are those of the driver API documentation; breaking one is a report and the documented error.
#ifndef WEIR_EMULATED_GPU_DEVICE_VMM_H_
#define WEIR_EMULATED_GPU_DEVICE_VMM_H_

#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

using FrameHandle = CUmemGenericAllocationHandle;

Status ReserveAddresses(uintptr_t* address, size_t size, size_t alignment, uintptr_t hint);
Status FreeReservation(uintptr_t address, size_t size);

// On `device`. A new frame holds zeros (0xCB bytes when poisoning). Frames made one after the other lie one after the
// other in the memfd, so that mapping them in order needs one kernel mapping in all (vm.max_map_count is
// 65530 by default).
Status CreateFrame(FrameHandle* handle, size_t size, int device);
Status RetainFrame(uintptr_t mapped_address, FrameHandle* handle);
// The bytes go back when the last handle is released and the last mapping is gone.
Status ReleaseFrame(FrameHandle handle);
Status DescribeFrame(FrameHandle handle, size_t* size, int* device);

Status Map(uintptr_t address, size_t size, size_t offset, FrameHandle handle);
Status Unmap(uintptr_t address, size_t size);
// Kernels need kReadWrite here; copies need kRead of their source.
enum class Permission : uint8_t { kNone, kRead, kReadWrite };
// What `device` may do; others keep what they may.
Status SetAccess(uintptr_t address, size_t size, int device, Permission access);
Status GetAccess(uintptr_t address, int device, Permission* access);

// The reservation that holds `address`, and the mapping; false when none does.
bool LocateReservation(uintptr_t address, uintptr_t* begin, size_t* size);
bool LocateMapping(uintptr_t address, uintptr_t* begin, size_t* size, int* device);
// Every byte mapped with at least this access for `device`, for some device if it is kSomeDevice (memory.h); otherwise `hole`
// is the first address that is not.
bool IsAccessible(uintptr_t address, size_t size, Permission least, int device, uintptr_t* hole);

// Frames whose bytes are still taken.
size_t LiveFrames();

struct AddressFacts {
  const char* state = "not reserved";
  uintptr_t reservation = 0;
  size_t reservation_size = 0;
};
// For the fault report only: reads without the lock.
AddressFacts DescribeWithoutLock(uintptr_t address);

}  // namespace weir::emulated

#endif
