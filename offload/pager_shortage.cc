// The figures of a request that could not be served, taken while the op still holds its pins.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "offload/pager.h"

namespace weir {
namespace {

// In whole frames, as the cap counts it.
Bytes Outside(const FramePool& frames) {
  return SaturatingSubtract(frames.counted().bytes(), frames.held().bytes());
}

constexpr size_t kLargestShown = 5;

using Extents = absl::flat_hash_set<const Extent*>;

Hold HoldOf(const Extent* extent, const Extents& needed) {
  if (extent->live_blocks == 0) return Hold::kCached;
  if (extent->kind == ExtentKind::kSlab) return Hold::kFloor;
  if (needed.contains(extent)) return Hold::kThisOp;
  if (extent->pins > 0) return Hold::kOtherOps;
  if (extent->pinned_for_good) return Hold::kForGood;
  return extent->without_evidence > 0 ? Hold::kNoEvidence : Hold::kMayLeave;
}

void KeepLargest(std::vector<Shortage::Tensor>& largest, const Shortage::Tensor& tensor) {
  auto before = [](const Shortage::Tensor& a, const Shortage::Tensor& b) {
    return a.size != b.size ? a.size > b.size : a.at < b.at;
  };
  if (largest.size() == kLargestShown && !before(tensor, largest.back())) return;
  largest.insert(std::upper_bound(largest.begin(), largest.end(), tensor, before), tensor);
  if (largest.size() > kLargestShown) largest.pop_back();
}

// How much of extents of these sizes fits `room`, taken largest first.
Bytes Packed(std::vector<Candidate> extents, Bytes room) {
  std::sort(extents.begin(), extents.end(), [](auto& a, auto& b) { return a.pages > b.pages; });
  Bytes packed;
  for (const Candidate& extent : extents) {
    if (packed + extent.pages.bytes() <= room) packed += extent.pages.bytes();
  }
  return packed;
}

}  // namespace

void Pager::SurveyLocked(const Extents& needed, Shortage& shortage, std::vector<Candidate>& movable) {
  device_.mutex().AssertHeld();
  Bytes in_extents;
  for (const Extent* extent : device_.ExtentsLocked()) {
    const Hold hold = HoldOf(extent, needed);
    if (extent->HasFrames()) {
      shortage.by_hold[static_cast<size_t>(hold)] += extent->bytes();
      in_extents += extent->bytes();
      if (hold == Hold::kMayLeave)
        movable.push_back(Candidate{extent->number, extent->last_touch, extent->pages.count});
    }
    for (const Block* block = extent->first; block != nullptr; block = block->after) {
      if (!block->IsFree())
        KeepLargest(shortage.largest, {block->addr, block->requested, extent->state, hold});
    }
  }
  shortage.by_hold[static_cast<size_t>(Hold::kCached)] +=
      device_.CachedLocked().bytes() + device_.frames().pooled().bytes();
  const Bytes frames = device_.frames().held().bytes();
  shortage.by_hold[static_cast<size_t>(Hold::kOutside)] = Outside(device_.frames());
  shortage.held = frames + shortage.Of(Hold::kOutside);
  const Bytes known = in_extents + device_.CachedLocked().bytes() + device_.frames().pooled().bytes();
  shortage.by_hold[static_cast<size_t>(Hold::kInTransit)] = SaturatingSubtract(frames, known);
  shortage.waiting = device_.WaitingLocked();
}

Shortage Pager::Survey(const Room& room, OpPins& op, const Refusal& refusal) {
  Shortage shortage;
  shortage.op = op.outermost();
  if (shortage.op != op.name()) shortage.inner = op.name();
  shortage.refusal = refusal;
  shortage.arguments_only = !room.requests.empty();
  shortage.more = room.pages.bytes();
  shortage.cap = device_.cap();
  shortage.ceiling =
      device_.HasCap() ? device_.frames().ceiling().bytes() + Outside(device_.frames()) : Bytes::Max();
  // A lower cap asks for room that nobody is going to use.
  const bool lowers =
      device_.HasCap() && device_.frames().wanted().bytes() < device_.cap().RoundedDownTo(kPageBytes);
  if (lowers) shortage.lower_cap = device_.frames().wanted().bytes();
  std::vector<Candidate> movable;
  {
    LockHolder lock(&device_.mutex());
    Extents needed;
    for (const OpPins::Pin& pin : op.pins()) {
      if (pin.device == &device_) needed.insert(pin.extent);
    }
    for (const TouchRequest& request : room.requests) {
      const Block* block = device_.FindBlockLocked(request.addr);
      if (block != nullptr && block->extent->kind != ExtentKind::kSlab) needed.insert(block->extent);
    }
    for (const DeviceAllocator::Pinner& pinner : device_.PinnersLocked()) {
      if (pinner.op != &op) shortage.other_ops.push_back(pinner.name);
    }
    SurveyLocked(needed, shortage, movable);
    for (const Extent* extent : needed) {
      if (extent->state != Residency::kFree) shortage.needed += extent->bytes();
    }
  }
  // An allocation that lengthens a free run has taken that already.
  shortage.needed += shortage.Of(Hold::kInTransit);
  if (room.requests.empty() && !lowers) shortage.needed += room.pages.bytes();
  shortage.ram_used = ram_.used();
  shortage.ram_budget = ram_.budget();
  if (refusal.by == Refusal::By::kNobody) shortage.may_leave_now = Packed(movable, ram_.room());
  for (size_t index : policy_.PickVictims(movable, PageCount::ToHold(shortage.ToLeave())))
    shortage.would_leave += movable[index].pages.bytes();
  shortage.locked_limit = LockedMemoryLimit();
  if (const absl::StatusOr<DeviceMemory> memory = driver_.MemoryInfo(device_.device()); memory.ok())
    shortage.card = memory->total;
  return shortage;
}

}  // namespace weir
