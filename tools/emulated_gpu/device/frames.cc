#include "tools/emulated_gpu/device/frames.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace weir::emulated {

long PhysicalMemory::Take(size_t size, bool poison) {
  if (fd_ < 0) fd_ = memfd_create("weir-emulated-vram", MFD_CLOEXEC);
  if (fd_ < 0) return -1;
  long offset = -1;
  for (auto range = free_ranges_.begin(); range != free_ranges_.end(); ++range) {
    if (range->second < size) continue;
    offset = range->first;
    const size_t rest = range->second - size;
    free_ranges_.erase(range);
    if (rest > 0) free_ranges_[offset + static_cast<long>(size)] = rest;
    break;
  }
  if (offset < 0) {
    if (ftruncate(fd_, end_ + static_cast<long>(size)) != 0) return -1;
    offset = end_;
    end_ += static_cast<long>(size);
  }
  if (!poison) return offset;
  const std::string bytes(size_t{1} << 20, '\xCB');
  for (size_t done = 0; done < size; done += bytes.size()) {
    if (pwrite(fd_, bytes.data(), std::min(bytes.size(), size - done), offset + static_cast<long>(done)) < 0)
      break;
  }
  return offset;
}

void PhysicalMemory::Return(long offset, size_t size) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<long>(size));
  auto next = free_ranges_.lower_bound(offset);
  if (next != free_ranges_.end() && offset + static_cast<long>(size) == next->first) {
    size += next->second;
    next = free_ranges_.erase(next);
  }
  if (next != free_ranges_.begin()) {
    auto before = std::prev(next);
    if (before->first + static_cast<long>(before->second) == offset) {
      before->second += size;
      return;
    }
  }
  free_ranges_[offset] = size;
}

}  // namespace weir::emulated
