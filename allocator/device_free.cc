// Freeing: blocks back to holes, empty extents to the caches, and the frees that wait for a recorded stream.
#include <algorithm>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/log.h"
#include "allocator/base/safeguards.h"
#include "allocator/device_allocator.h"
#include "allocator/wait_scope.h"

namespace weir {
namespace {

constexpr Stream kNoStream(~uintptr_t{0});  // no driver gives this handle

}  // namespace

bool DeviceAllocator::Free(DeviceAddr addr) {
  AfterFree after;
  std::vector<StreamUse> unrecordable;
  {
    LockHolder lock(&mutex_);
    Block* block = FindBlockLocked(addr);
    if (block == nullptr || block->addr != addr) return false;
    bool deferred = false;
    const bool recorded =
        !block->other_streams.uses().empty() && !Without(Safeguard::kRecordedStreamDefersFree);
    if (recorded && IsPendingLocked(block)) return false;
    TellBlockLocked(EventKind::kFreeRequested, block);
    if (recorded) deferred = DeferFreeLocked(block, &unrecordable);
    CountFreedLocked(block);
    if (!deferred) after = FreeLocked(block);
  }
  if (!unrecordable.empty()) WaitForDestroyedStreams(unrecordable);
  if (after.storage != nullptr && release_storage_ != nullptr) release_storage_(after.storage);
  return true;
}

DeviceAllocator::AfterFree DeviceAllocator::FreeLocked(Block* block) {
  Extent* extent = block->extent;
  AfterFree after{block->storage};
  CountReleasedLocked(block);
  TellBlockLocked(EventKind::kFreed, block);
  heap_.Free(block);
  AfterBlockLocked(extent);
  return after;
}

void DeviceAllocator::ExtentEmptiedLocked(Extent* extent) {
  switch (extent->state) {
    case Residency::kDraining:
      return;  // whoever drains it sees that no block is left (EndDrainLocked)
    case Residency::kInRam:
      GiveUpPagesLocked(extent);
      return;
    case Residency::kFilling:
    case Residency::kResident:
      break;
    case Residency::kFree:
      WEIR_CHECK(false) << "a block of a free extent was freed";
  }
  if (!Without(Safeguard::kOwnStreamIsAUse)) extent->uses.Add(clock_.Mark(extent->stream));
  if (extent->pins > 0) {  // an op in flight has queued work on any of these until now
    const StreamUses known = extent->uses;
    for (const StreamUse& use : known.uses()) extent->uses.Add(clock_.Mark(use.stream));
  }
  if (extent->state == Residency::kFilling || extent->pinned_for_good) {
    extent->pinned_for_good = false;
    GiveUpPagesLocked(extent);
  } else if (extent->kind == ExtentKind::kLarge) {
    FlushLastLargeLocked();
    last_large_ = extent;
  } else {
    Extent*& spare = spare_[extent->kind == ExtentKind::kSlab ? 0 : 1];
    if (spare == nullptr) {
      spare = extent;
    } else {
      GiveUpPagesLocked(extent);
    }
  }
}

// The extent ends; its pages become free: mapped ones can be reused by its stream, the others lie unmapped.
void DeviceAllocator::GiveUpPagesLocked(Extent* extent) {
  heap_.Abandon(extent);
  bool mapped = extent->HasFrames();
  if (!extent->slots.empty() && room_maker_ != nullptr) {
    room_maker_->Retire(
        RetiredSlots{std::move(extent->slots), extent->state == Residency::kFilling ? extent->fill : Fill{}});
  }
  extent->slots.clear();
  space_->SetOwner(extent->pages, nullptr);
  if (mapped) {
    CountExtentLocked(extent, false);
    // While a copy back is queued on another stream, the extent's own may not write here yet: nobody takes the pages
    // but a harvest, which waits for all uses.
    bool filled_elsewhere = extent->state == Residency::kFilling && extent->fill.stream != extent->stream &&
                            !Without(Safeguard::kFilledElsewhereKeptApart);
    const Lane owner = filled_elsewhere ? Lane(kNoStream) : extent->lane();
    if (Without(Safeguard::kLastUseOfFreedKept)) extent->uses.Clear();
    PutMappedLocked(PageHeap::MappedRun{extent->pages, owner, std::move(extent->uses)});
  } else {
    TellRangeLocked(EventKind::kForgotten, extent->pages, extent->stream);
    pages_.PutUnmapped(extent->pages);
  }
  RetireExtentLocked(extent);
}

void DeviceAllocator::RetireExtentLocked(Extent* extent) {
  extents_.Remove(extent);
  leaving_.Remove(extent);
  need_.CountGone(*extent);
  extent->state = Residency::kFree;
  extent->fill = Fill{};
  if (extent->pins == 0) unused_objects_.push_back(extent);
}

void DeviceAllocator::FlushLastLargeLocked() {
  if (last_large_ != nullptr) GiveUpPagesLocked(std::exchange(last_large_, nullptr));
}

void DeviceAllocator::FlushSparesLocked() {
  FlushLastLargeLocked();
  for (Extent*& spare : spare_) {
    if (spare != nullptr) GiveUpPagesLocked(spare);
    spare = nullptr;
  }
}

void DeviceAllocator::RecordStream(DeviceAddr addr, Stream stream) {
  LockHolder lock(&mutex_);
  Block* block = FindBlockLocked(addr);
  if (block == nullptr || stream == block->extent->stream) return;
  StreamUse use = clock_.Mark(stream);
  block->other_streams.Add(use);
  block->extent->uses.Add(use);
}

// Records an event on every stream that used the block; false when there is nothing to wait for. `unrecordable`: the
// uses that the caller has to wait for in another way, after the mutex is released.
bool DeviceAllocator::DeferFreeLocked(Block* block, std::vector<StreamUse>* unrecordable) {
  ScopedContext context(driver_, config_.device);
  PendingFree pending{block, {}};
  for (const StreamUse& use : block->other_streams.uses()) {
    StreamUse until = clock_.Mark(use.stream);
    block->extent->uses.Add(until);
    absl::StatusOr<Event> event = events_.Record(use.stream);
    if (event.ok()) {
      pending.waits.emplace_back(*event, until);
    } else if (!absl::IsUnavailable(event.status())) {
      // Most likely the job has destroyed the stream: its work goes on, and nobody can name it any more.
      pending.waits.emplace_back(Event{}, until);
      unrecordable->push_back(until);
    }  // otherwise CUDA is shutting down: nothing runs any more
  }
  if (pending.waits.empty()) return false;
  pending_.push_back(std::move(pending));
  return true;
}

bool DeviceAllocator::IsPendingLocked(const Block* block) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const PendingFree& free) { return free.block == block; });
}

void DeviceAllocator::WaitForDestroyedStreams(const std::vector<StreamUse>& uses) {
  {
    ScopedContext context(driver_, config_.device);
    WaitScope waiting(trace::WaitCause::kStreams);
    absl::Status waited = driver_.SynchronizeContext();
    if (!waited.ok()) {  // their blocks are lost
      Log(LogLevel::kWarn, "a stream could not be waited for: ", waited.message());
      return;
    }
  }
  {
    LockHolder lock(&mutex_);
    for (const StreamUse& use : uses) clock_.Passed(use);
  }
  FinishFrees(/*wait=*/false);
}

bool DeviceAllocator::WaitIsOverLocked(Event event, StreamUse use) {
  if (!clock_.HasPassed(use)) {
    if (event.handle == nullptr) return false;
    absl::StatusOr<bool> passed = driver_.QueryEvent(event);
    if (passed.ok() ? !*passed : !absl::IsUnavailable(passed.status()))
      return false;  // unavailable: CUDA is gone
    clock_.Passed(use);
  }
  if (event.handle != nullptr) events_.Return(event);
  return true;
}

bool DeviceAllocator::FinishFrees(bool wait) {
  ScopedContext context(driver_, config_.device);
  std::vector<void*> storages;
  bool any = false;
  for (;;) {
    std::pair<Event, StreamUse> oldest;
    {
      LockHolder lock(&mutex_);
      if (pending_.empty()) break;
      for (size_t i = 0; i < pending_.size();) {
        auto& waits = pending_[i].waits;
        while (!waits.empty() && WaitIsOverLocked(waits.back().first, waits.back().second)) waits.pop_back();
        if (!waits.empty()) {
          if (oldest.first.handle == nullptr) oldest = waits.back();
          ++i;
          continue;
        }
        Block* block = pending_[i].block;
        pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
        block->other_streams.Clear();
        AfterFree after = FreeLocked(block);
        if (after.storage != nullptr) storages.push_back(after.storage);
        any = true;
      }
      if (any || !wait || oldest.first.handle == nullptr) break;
    }
    WaitScope waiting(trace::WaitCause::kStreams);
    absl::Status status = driver_.SynchronizeEvent(oldest.first);
    if (!status.ok()) break;
    LockHolder lock(&mutex_);
    clock_.Passed(oldest.second);
  }
  for (void* storage : storages) {
    if (release_storage_ != nullptr) release_storage_(storage);
  }
  return any;
}

}  // namespace weir
