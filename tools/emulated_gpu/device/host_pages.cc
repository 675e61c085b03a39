#include "tools/emulated_gpu/device/host_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace weir::emulated {
namespace {

constexpr size_t kPage = 4096;
// Documentation/admin-guide/mm/pagemap.rst: bit 63 the page is present, bit 62 it is swapped.
constexpr uint64_t kHeld = uint64_t{3} << 62;

uintptr_t PageUp(uintptr_t begin) { return (begin + kPage - 1) / kPage * kPage; }
uintptr_t PageDown(uintptr_t end) { return end / kPage * kPage; }

// Calls `visit(begin)` for each page in [first, last) that the system holds something for, until it returns false. False then,
// and when the system does not tell.
template <typename Visit>
bool ForEachHeld(uintptr_t first, uintptr_t last, const Visit& visit) {
  // Opened each time: an open file stays that of the process that forked this one.
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return false;
  bool goes_on = true;
  uint64_t entries[512];
  for (uintptr_t page = first; page < last && goes_on;) {
    const size_t count = std::min<size_t>((last - page) / kPage, std::size(entries));
    const auto bytes = static_cast<ssize_t>(count * sizeof(uint64_t));
    const auto at = static_cast<off_t>(page / kPage * sizeof(uint64_t));
    goes_on = pread(pagemap, entries, static_cast<size_t>(bytes), at) == bytes;
    for (size_t i = 0; i < count && goes_on; ++i)
      goes_on = (entries[i] & kHeld) == 0 || visit(page + i * kPage);
    page += count * kPage;
  }
  close(pagemap);
  return goes_on;
}

bool AreAbsent(uintptr_t first, uintptr_t last) {
  return ForEachHeld(first, last, [](uintptr_t) { return false; });
}

bool IsZero(uintptr_t begin, uintptr_t end) {
  const auto* bytes = reinterpret_cast<const char*>(begin);
  return begin == end || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, end - begin - 1) == 0);
}

// Part of a page. One that is absent stays so: with transparent huge pages a touch may fill 2 MiB.
void Clear(uintptr_t begin, uintptr_t end) {
  if (begin < end && !AreAbsent(PageDown(begin), PageUp(end)))
    std::memset(reinterpret_cast<void*>(begin), 0, end - begin);
}

}  // namespace

void DropPages(uintptr_t begin, size_t size) {
  const uintptr_t end = begin + size, first = PageUp(begin), last = PageDown(end);
  if (first >= last || madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    std::memset(reinterpret_cast<void*>(begin), 0, size);
    return;
  }
  Clear(begin, first);
  Clear(last, end);
}

bool AreZeros(uintptr_t begin, size_t size) {
  const uintptr_t end = begin + size;
  return ForEachHeld(PageDown(begin), PageUp(end), [&](uintptr_t page) {
    return IsZero(std::max(begin, page), std::min(end, page + kPage));
  });
}

}  // namespace weir::emulated
