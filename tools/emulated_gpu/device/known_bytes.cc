#include "tools/emulated_gpu/device/known_bytes.h"

#include <map>
#include <mutex>

#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

struct Written {
  size_t size;
  uint64_t launches;  // kernels launched before the write
};

std::mutex mutex;
auto& ranges = *new std::map<uintptr_t, Written>;  // guarded by mutex; they do not overlap

void Erase(uintptr_t address, size_t size) {
  auto range = ranges.upper_bound(address);
  if (range != ranges.begin() && std::prev(range)->first + std::prev(range)->second.size > address) --range;
  while (range != ranges.end() && range->first < address + size) range = ranges.erase(range);
}

}  // namespace

void RememberWritten(uintptr_t address, size_t size) {
  if (Settings().kernels != Kernels::kNone) return;
  std::lock_guard<std::mutex> lock(mutex);
  Erase(address, size);
  ranges[address] = {size, Counted().launches.load(std::memory_order_relaxed)};
}

void ForgetWritten(uintptr_t address, size_t size) {
  if (Settings().kernels != Kernels::kNone) return;
  std::lock_guard<std::mutex> lock(mutex);
  Erase(address, size);
}

bool IsKnown(uintptr_t address, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  auto range = ranges.upper_bound(address);
  if (range == ranges.begin()) return false;
  --range;
  if (address + size > range->first + range->second.size) return false;
  return size > kScalarBytes || range->second.launches == Counted().launches.load(std::memory_order_relaxed);
}

}  // namespace weir::emulated
