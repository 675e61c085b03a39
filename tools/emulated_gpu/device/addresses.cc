#include "tools/emulated_gpu/device/addresses.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "tools/emulated_gpu/device/known_bytes.h"

namespace weir::emulated {
namespace {

constexpr size_t kWindowBytes = size_t{16} << 40;  // of 128 TiB of user addresses
constexpr int kMostWindows = 32;

struct Window {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<uintptr_t> taken{0};  // where the part that was never given out begins
};
Window windows[kMostWindows];
std::atomic<int> window_count{0};

std::mutex mutex;
auto& free_ranges = *new std::map<uintptr_t, size_t>;  // guarded by mutex; neighbours are merged
uintptr_t cursor = 0;                                  // guarded by mutex; where the last range was taken

uintptr_t AlignUp(uintptr_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

void AddFree(uintptr_t begin, size_t size) {
  auto next = free_ranges.lower_bound(begin);
  if (next != free_ranges.end() && begin + size == next->first) {
    size += next->second;
    next = free_ranges.erase(next);
  }
  if (next != free_ranges.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += size;
      return;
    }
  }
  free_ranges[begin] = size;
}

void CutOut(std::map<uintptr_t, size_t>::iterator range, uintptr_t begin, size_t size) {
  const uintptr_t first = range->first;
  const uintptr_t end = first + range->second;
  free_ranges.erase(range);
  if (begin > first) free_ranges[first] = begin - first;
  if (begin + size < end) free_ranges[begin + size] = end - begin - size;
  cursor = begin + size;
  for (Window& window : windows) {
    if (begin >= window.begin && begin < window.end && window.taken < cursor) window.taken = cursor;
  }
}

bool TakeAt(uintptr_t address, size_t size) {
  auto range = free_ranges.upper_bound(address);
  if (range == free_ranges.begin()) return false;
  --range;
  if (address + size > range->first + range->second) return false;
  CutOut(range, address, size);
  return true;
}

// The first range at or above `from`; a free range that begins below it is cut there.
uintptr_t TakeFrom(uintptr_t from, size_t size, size_t alignment) {
  auto range = free_ranges.upper_bound(from);
  if (range != free_ranges.begin()) --range;
  for (; range != free_ranges.end(); ++range) {
    const uintptr_t begin = AlignUp(std::max(range->first, from), alignment);
    if (begin + size > range->first + range->second) continue;
    CutOut(range, begin, size);
    return begin;
  }
  return 0;
}

bool AddWindow(size_t at_least) {
  const int index = window_count.load();
  if (index == kMostWindows) return false;
  size_t size = std::max(kWindowBytes, AlignUp(at_least, kGranularity));
  void* begin = MAP_FAILED;
  for (; begin == MAP_FAILED && size >= at_least; size /= 2) {
    begin = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin != MAP_FAILED) break;
  }
  if (begin == MAP_FAILED) return false;
  madvise(begin, size, MADV_DONTDUMP);
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin);
  windows[index].begin = first;
  windows[index].end = first + size;
  window_count.store(index + 1, std::memory_order_release);
  const uintptr_t aligned = AlignUp(first, kGranularity);
  AddFree(aligned, (size - (aligned - first)) / kGranularity * kGranularity);
  return true;
}

}  // namespace

uintptr_t TakeAddresses(size_t size, size_t alignment, uintptr_t hint) {
  std::lock_guard<std::mutex> lock(mutex);
  alignment = std::max(alignment, kGranularity);
  if (window_count == 0 && !AddWindow(kGranularity)) return 0;
  if (hint != 0 && hint % alignment == 0 && TakeAt(hint, size)) return hint;
  for (int attempt = 0; attempt < 2; ++attempt) {
    uintptr_t found = TakeFrom(cursor, size, alignment);
    if (found == 0) found = TakeFrom(0, size, alignment);
    if (found != 0) return found;
    if (attempt == 0 && !AddWindow(size + alignment)) return 0;
  }
  return 0;
}

bool MakeInaccessible(uintptr_t address, size_t size) {
  ForgetWritten(address, size);
  return mmap(reinterpret_cast<void*>(address), size, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void ReturnAddresses(uintptr_t address, size_t size) {
  MakeInaccessible(address, size);
  std::lock_guard<std::mutex> lock(mutex);
  AddFree(address, size);
}

bool InDeviceWindow(uintptr_t address) {
  const int count = window_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    if (address >= windows[i].begin && address < windows[i].end) return true;
  }
  return false;
}

bool WasEverTaken(uintptr_t address) {
  const int count = window_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    if (address >= windows[i].begin && address < windows[i].taken) return true;
  }
  return false;
}

}  // namespace weir::emulated
