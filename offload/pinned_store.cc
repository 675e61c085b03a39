#include "offload/pinned_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/log.h"
#include "allocator/base/size_text.h"

namespace weir {
namespace {

// One slab: large enough that pinning is rare, small enough that little is pinned in vain.
constexpr Bytes kSlab = MiB(64);

}  // namespace

absl::Status CopyRuns(PageRun pages, std::span<const RamSlot> slots,
                      absl::FunctionRef<absl::Status(PageRun part, void* memory)> copy) {
  WEIR_DCHECK(slots.size() == pages.count.count());
  for (size_t first = 0; first < slots.size();) {
    char* const memory = static_cast<char*>(slots[first].memory);
    size_t count = 1;
    while (first + count < slots.size() &&
           slots[first + count].memory == memory + (kPageBytes * count).count())
      ++count;
    absl::Status status = copy(PageRun{pages.first + first, PageCount(count)}, memory);
    if (!status.ok()) return status;
    first += count;
  }
  return absl::OkStatus();
}

PinnedStore::~PinnedStore() {
  LockHolder lock(&mutex_);
  for (const auto& [memory, pages] : slabs_) {
    absl::Status status = driver_.HostFree(memory);
    if (!status.ok()) Log(LogLevel::kDebug, "pinned memory was not freed: ", status.message());
  }
  budget_.Return(pinned_);
}

Bytes PinnedStore::SlabSize(PageCount at_least) {
  Bytes slab = kSlab;
  if (budget_.IsShared())  // an idle part of a slab is lost to the others
    slab = std::clamp((budget_.limit() / 16).RoundedDownTo(kPageBytes), kPageBytes, kSlab);
  return std::min(std::max(at_least.bytes(), slab), budget_.left());
}

// Pinned memory of `size` that the budget has given.
absl::StatusOr<void*> PinnedStore::PinLocked(Bytes size) {
  absl::Status taken = budget_.Take(size);
  if (!taken.ok()) return taken;
  absl::StatusOr<void*> memory = driver_.HostAlloc(size);
  if (memory.ok()) return memory;
  budget_.Return(size);
  return absl::ResourceExhaustedError(absl::StrCat("the system refused ", FormatBytes(size),
                                                   " of pinned memory with ", FormatBytes(pinned_),
                                                   " pinned: ", memory.status().message()));
}

absl::Status PinnedStore::GrowLocked(PageCount at_least) {
  Bytes size = SlabSize(at_least);
  if (size < at_least.bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the RAM budget is used up (WEIR_RAM=", FormatBytes(budget_.limit()), ", ",
                     FormatBytes(used_), " in use, ", FormatBytes(at_least.bytes()), " more needed",
                     budget_.IsShared() ? ", shared with other devices or processes" : "", ")"));
  }
  absl::StatusOr<void*> memory = PinLocked(size);
  if (!memory.ok() && size > at_least.bytes()) {
    size = at_least.bytes();
    memory = PinLocked(size);
  }
  if (!memory.ok()) return memory.status();
  char* base = static_cast<char*>(*memory);
  slabs_.emplace(base, PageCount(size / kPageBytes));
  pinned_ += size;
  for (Bytes at; at < size; at += kPageBytes) free_.push_back(base + at.count());
  std::sort(free_.begin(), free_.end(), std::greater<>());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RamSlot>> PinnedStore::Take(PageCount pages) {
  LockHolder lock(&mutex_);
  if (FreeLocked() < pages) {
    absl::Status status = GrowLocked(pages - FreeLocked());
    if (!status.ok()) return status;
  }
  std::vector<RamSlot> slots;
  slots.reserve(pages.count());
  for (uint64_t i = 0; i < pages.count(); ++i) {
    slots.push_back(RamSlot{free_.back()});
    free_.pop_back();
  }
  used_ += pages.bytes();
  peak_used_ = std::max(peak_used_, used_);
  return slots;
}

void PinnedStore::Return(const std::vector<RamSlot>& slots) {
  if (slots.empty()) return;
  LockHolder lock(&mutex_);
  used_ -= kPageBytes * slots.size();
  for (const RamSlot& slot : slots) free_.push_back(static_cast<char*>(slot.memory));
  std::sort(free_.begin(), free_.end(), std::greater<>());
}

void PinnedStore::WarmUp() {
  LockHolder lock(&mutex_);
  if (!slabs_.empty() || budget_.limit().IsZero()) return;
  absl::Status status = GrowLocked(PageCount(1));
  if (!status.ok()) Log(LogLevel::kInfo, "the RAM tier could not start early: ", status.message());
}

void PinnedStore::Trim() {
  LockHolder lock(&mutex_);
  for (auto slab = slabs_.begin(); slab != slabs_.end();) {
    char* base = slab->first;
    char* end = base + slab->second.bytes().count();
    auto inside = [&](char* slot) { return slot >= base && slot < end; };
    bool idle =
        std::count_if(free_.begin(), free_.end(), inside) == static_cast<ptrdiff_t>(slab->second.count());
    if (!idle || !driver_.HostFree(base).ok()) {
      ++slab;
      continue;
    }
    free_.erase(std::remove_if(free_.begin(), free_.end(), inside), free_.end());
    pinned_ -= slab->second.bytes();
    budget_.Return(slab->second.bytes());
    slab = slabs_.erase(slab);
  }
}

Bytes PinnedStore::room() const {
  const Bytes left = budget_.left();
  LockHolder lock(&mutex_);
  return FreeLocked().bytes() + left;
}

Bytes PinnedStore::pinned() const {
  LockHolder lock(&mutex_);
  return pinned_;
}

Bytes PinnedStore::used() const {
  LockHolder lock(&mutex_);
  return used_;
}

Bytes PinnedStore::peak_used() const {
  LockHolder lock(&mutex_);
  return peak_used_;
}

}  // namespace weir
