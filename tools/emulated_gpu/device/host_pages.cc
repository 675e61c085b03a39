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

// Whether the system holds nothing for the pages in [first, last).
bool AreAbsent(uintptr_t first, uintptr_t last) {
  // Opened each time: an open file stays that of the process that forked this one.
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0) return false;
  bool absent = true;
  uint64_t entries[512];
  for (uintptr_t page = first; page < last && absent;) {
    const size_t count = std::min<size_t>((last - page) / kPage, std::size(entries));
    const auto bytes = static_cast<ssize_t>(count * sizeof(uint64_t));
    const auto at = static_cast<off_t>(page / kPage * sizeof(uint64_t));
    absent = pread(pagemap, entries, static_cast<size_t>(bytes), at) == bytes &&
             std::none_of(entries, entries + count, [](uint64_t entry) { return (entry & kHeld) != 0; });
    page += count * kPage;
  }
  close(pagemap);
  return absent;
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

bool ArePagesUntouched(uintptr_t begin, size_t size) {
  return AreAbsent(PageUp(begin), PageDown(begin + size));
}

}  // namespace weir::emulated
