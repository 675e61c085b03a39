// The words of an out-of-memory error. The first sentences are torch's own: frameworks match them.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "allocator/base/size_text.h"
#include "pytorch_plugin/runtime.h"

namespace weir {

std::string OutOfMemoryText(Device& device, Bytes requested, const std::string& reason) {
  DeviceAllocator& allocator = *device.allocator;
  DeviceCounters counters = allocator.Counters();
  Bytes held = allocator.frames().counted().bytes();
  Bytes allocated(static_cast<uint64_t>(counters.bytes[kAllPools].current));
  Bytes total = std::min(device.card_total, allocator.cap());
  return absl::StrCat("CUDA out of memory. Tried to allocate ", FormatBytes(requested), ". GPU ",
                      device.index.value, " has a total capacity of ", FormatBytes(total), " of which ",
                      FormatBytes(allocator.FreeWithoutEvicting()), " is free. Process ", getpid(), " has ",
                      FormatBytes(held), " memory in use. Of the allocated memory ", FormatBytes(allocated),
                      " is allocated by PyTorch, and ", FormatBytes(SaturatingSubtract(held, allocated)),
                      " is reserved by PyTorch but unallocated.\n", reason);
}

}  // namespace weir
