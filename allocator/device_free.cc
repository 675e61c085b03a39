// Freeing: blocks back to holes, empty extents to the caches, and the frees that wait for a recorded stream.
#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/base/log.h"
#include "allocator/device_allocator.h"
#include "allocator/wait_scope.h"

namespace weir {

bool DeviceAllocator::Free(DeviceAddr addr) {
  AfterFree after;
  {
    LockHolder lock(&mutex_);
    Block* block = FindBlockLocked(addr);
    if (block == nullptr || block->addr != addr) return false;
    if (!block->other_streams.uses().empty() && DeferFreeLocked(block)) return true;
    after = FreeLocked(block);
  }
  if (after.storage != nullptr && release_storage_ != nullptr) release_storage_(after.storage);
  return true;
}

DeviceAllocator::AfterFree DeviceAllocator::FreeLocked(Block* block) {
  Extent* extent = block->extent;
  AfterFree after{block->storage};
  CountBlockLocked(block, false);
  heap_.Free(block);
  if (extent->live_blocks == 0) ExtentEmptiedLocked(extent);
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
  extent->uses.Add(clock_.Mark(extent->stream));
  if (extent->state == Residency::kFilling || extent->pinned_for_good) {
    extent->pinned_for_good = false;
    GiveUpPagesLocked(extent);
  } else if (extent->kind == ExtentKind::kLarge) {
    cached_large_[{extent->stream, extent->pages.count.count()}].push_back(extent);
    cached_large_pages_ += extent->pages.count;
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
    room_maker_->Retire(RetiredSlots{std::move(extent->slots), extent->state == Residency::kFilling ? extent->fill : Fill{}});
  }
  extent->slots.clear();
  space_->SetOwner(extent->pages, nullptr);
  if (mapped) {
    CountExtentLocked(extent, false);
    pages_.PutMapped(PageHeap::MappedRun{extent->pages, extent->stream, std::move(extent->uses)});
  } else {
    pages_.PutUnmapped(extent->pages);
  }
  RetireExtentLocked(extent);
}

void DeviceAllocator::RetireExtentLocked(Extent* extent) {
  extents_.erase(extent);
  extent->state = Residency::kFree;
  extent->fill = Fill{};
  if (extent->pins == 0) unused_objects_.push_back(extent);
}

void DeviceAllocator::FlushCachesLocked() {
  for (auto& [key, extents] : cached_large_) {
    for (Extent* extent : extents) GiveUpPagesLocked(extent);
    extents.clear();
  }
  cached_large_pages_ = PageCount();
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

// Records an event on every stream that used the block; false when there is nothing to wait for.
bool DeviceAllocator::DeferFreeLocked(Block* block) {
  ScopedContext context(driver_, config_.device);
  PendingFree pending{block, {}};
  for (const StreamUse& use : block->other_streams.uses()) {
    StreamUse until = clock_.Mark(use.stream);
    block->extent->uses.Add(until);
    absl::StatusOr<Event> event = events_.Record(use.stream);
    if (event.ok()) {
      pending.waits.emplace_back(*event, until);
    } else if (absl::IsInvalidArgument(event.status())) {
      // The job has destroyed the stream: the driver finishes its work first, and nobody can name it any more.
      absl::Status waited = driver_.SynchronizeContext();
      if (!waited.ok()) Log(LogLevel::kWarn, "a destroyed stream could not be waited for: ", waited.message());
    }  // otherwise CUDA is shutting down: nothing runs any more
  }
  if (pending.waits.empty()) return false;
  counters_.waiting.Add(static_cast<int64_t>(block->size.count()));
  pending_.push_back(std::move(pending));
  return true;
}

bool DeviceAllocator::FinishFrees(bool wait) {
  ScopedContext context(driver_, config_.device);
  std::vector<void*> storages;
  bool any = false;
  for (;;) {
    Event oldest;
    {
      LockHolder lock(&mutex_);
      for (size_t i = 0; i < pending_.size();) {
        auto& waits = pending_[i].waits;
        while (!waits.empty()) {
          absl::StatusOr<bool> passed = driver_.QueryEvent(waits.back().first);
          if (passed.ok() && !*passed) break;
          clock_.Passed(waits.back().second);
          events_.Return(waits.back().first);
          waits.pop_back();
        }
        if (!waits.empty()) {
          ++i;
          continue;
        }
        Block* block = pending_[i].block;
        pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
        counters_.waiting.Take(static_cast<int64_t>(block->size.count()));
        block->other_streams.Clear();
        AfterFree after = FreeLocked(block);
        if (after.storage != nullptr) storages.push_back(after.storage);
        any = true;
      }
      if (any || !wait || pending_.empty()) break;
      oldest = pending_.front().waits.back().first;
    }
    WaitScope waiting;
    absl::Status status = driver_.SynchronizeEvent(oldest);
    if (!status.ok()) break;
  }
  for (void* storage : storages) {
    if (release_storage_ != nullptr) release_storage_(storage);
  }
  return any;
}

}  // namespace weir
