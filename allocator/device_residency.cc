// The moves between residency states, and giving back pages that hold nothing: what the pager drives.
#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/base/log.h"
#include "allocator/base/nvtx_range.h"
#include "allocator/base/safeguards.h"
#include "allocator/device_allocator.h"
#include "allocator/wait_scope.h"

namespace weir {

Block* DeviceAllocator::FindBlockLocked(DeviceAddr addr) {
  Extent* extent = space_->Owner(addr);
  return extent == nullptr ? nullptr : heap_.Find(extent, addr);
}

std::optional<DeviceAllocator::BlockInfo> DeviceAllocator::FindBlock(DeviceAddr addr) {
  LockHolder lock(&mutex_);
  Block* block = FindBlockLocked(addr);
  if (block == nullptr) return std::nullopt;
  return BlockInfo{block->addr, block->requested, block->number};
}

const Block* DeviceAllocator::FindUnfreedLocked(DeviceAddr addr) {
  const Block* block = FindBlockLocked(addr);
  if (block == nullptr || (!block->other_streams.uses().empty() && IsPendingLocked(block))) return nullptr;
  return block;
}

DeviceAllocator::Life DeviceAllocator::LifeOf(DeviceAddr addr, Bytes size) {
  LockHolder lock(&mutex_);
  const Extent* extent = space_->Owner(addr);
  // While it is fetched it is mapped and still kInRam; otherwise it has no frames then.
  const bool moves =
      extent != nullptr && (extent->state == Residency::kDraining || extent->state == Residency::kInRam);
  const Block* block = FindUnfreedLocked(addr);
  if (block != nullptr && !moves && addr + size <= block->addr + block->size) return Life::kAlive;
  if (moves && addr + size <= space_->AddressOf(extent->pages) + extent->bytes()) return Life::kAlive;
  if (block != nullptr || !size.IsZero()) return Life::kDead;
  const DeviceAddr last = addr - Bytes(1);
  const Block* before = FindUnfreedLocked(last);
  // A block that was rounded up ends before its last byte, and so does every tensor in it.
  return before != nullptr && before->addr + before->requested == addr ? Life::kEnd : Life::kDead;
}

void DeviceAllocator::BeginDrainLocked(Extent* extent) {
  WEIR_CHECK(extent->MayLeave());
  if (!Without(Safeguard::kHolesOfDrainingHidden)) heap_.RemoveHoles(extent);
  extent->state = Residency::kDraining;
  leaving_.Remove(extent);
  need_.CountMove(allocations_);
}

void DeviceAllocator::CancelDrainLocked(Extent* extent, Residency back_to) {
  WEIR_CHECK(extent->state == Residency::kDraining);
  extent->state = back_to;
  if (back_to == Residency::kResident) extent->slots.clear();
  heap_.AddHoles(extent);
  leaving_.Restore(extent);
  if (extent->live_blocks == 0) ExtentEmptiedLocked(extent);
}

void DeviceAllocator::EndDrainLocked(Extent* extent) {
  WEIR_CHECK(extent->state == Residency::kDraining);
  extent->state = Residency::kInRam;
  extent->uses.Clear();
  CountExtentLocked(extent, false);
  TellRangeLocked(EventKind::kEvicted, extent->pages, extent->stream);
  if (extent->live_blocks == 0) GiveUpPagesLocked(extent);
}

void DeviceAllocator::BeginFillLocked(Extent* extent, Fill fill) {
  WEIR_CHECK(extent->state == Residency::kInRam);
  extent->state = Residency::kFilling;
  extent->fill = fill;
  leaving_.Restore(extent);
  need_.CountMove(allocations_);
  // No use is noted here: the op that fetches the extent pins it on the same stream.
  heap_.AddHoles(extent);
  CountExtentLocked(extent, true);
  TellRangeLocked(EventKind::kFetched, extent->pages, extent->stream);
  WEIR_DCHECK_SLOW(extent->IsValid());
}

std::vector<RamSlot> DeviceAllocator::EndFillLocked(Extent* extent) {
  WEIR_CHECK(extent->state == Residency::kFilling);
  extent->state = Residency::kResident;
  extent->fill = Fill{};
  std::vector<RamSlot> slots = std::move(extent->slots);
  extent->slots.clear();
  WEIR_DCHECK_SLOW(extent->IsValid());
  return slots;
}

absl::Status DeviceAllocator::WaitUntilPassed(const StreamUses& uses) {
  struct Fence {
    Event event;
    StreamUse covers;
  };
  std::vector<Fence> fences;
  {
    LockHolder lock(&mutex_);
    for (const StreamUse& use : uses.uses()) {
      if (!clock_.HasPassed(use)) fences.push_back(Fence{Event{}, clock_.Newest(use.stream)});
    }
  }
  absl::Status result;
  for (Fence& fence : fences) {
    absl::StatusOr<Event> event = events_.Record(fence.covers.stream);
    if (event.ok()) {
      fence.event = *event;
    } else if (absl::IsInvalidArgument(event.status())) {  // a stream that the job has destroyed
      result = driver_.SynchronizeContext();
    } else {
      result = event.status();
    }
  }
  for (Fence& fence : fences) {
    if (fence.event.handle == nullptr) continue;
    absl::StatusOr<bool> passed = driver_.QueryEvent(fence.event);
    if (!passed.ok() || !*passed) {
      WaitScope waiting(trace::WaitCause::kStreams);
      NvtxRange range(RangeKind::kWait, Bytes());
      absl::Status status = driver_.SynchronizeEvent(fence.event);
      if (!status.ok()) result = status;
    }
  }
  LockHolder lock(&mutex_);
  for (Fence& fence : fences) {
    if (result.ok()) clock_.Passed(fence.covers);
    if (fence.event.handle != nullptr) events_.Return(fence.event);
  }
  return result;
}

absl::StatusOr<PageCount> DeviceAllocator::Harvest(PageCount pages) {
  std::vector<PageHeap::MappedRun> runs;
  {
    LockHolder lock(&mutex_);
    FlushSparesLocked();
    runs = pages_.TakeForHarvest(pages);
    for (const PageHeap::MappedRun& run : runs)
      TellRangeLocked(EventKind::kUnmapped, run.run, run.lane.stream);
  }
  PageCount harvested;
  absl::Status result;
  StreamUses uses;
  for (const PageHeap::MappedRun& run : runs) uses.Add(run.uses);
  if (!runs.empty() && !Without(Safeguard::kLastUseBeforeHarvest)) result = WaitUntilPassed(uses);
  for (PageHeap::MappedRun& run : runs) {
    std::vector<FrameHandle> frames;
    if (result.ok()) result = space_->UnmapFrames(run.run, &frames);
    frames_.Return(frames);
    LockHolder lock(&mutex_);
    if (frames.empty()) {  // it stays mapped
      TellRangeLocked(EventKind::kMapped, run.run, run.lane.stream);
      PutMappedLocked(std::move(run));
    } else {
      harvested += run.run.count;
      pages_.PutUnmapped(run.run);
    }
  }
  if (!result.ok()) return result;
  return harvested;
}

void DeviceAllocator::EmptyCache() {
  ScopedContext context(driver_, config_.device);
  FinishFrees(/*wait=*/false);
  absl::StatusOr<PageCount> harvested = Harvest(space_->size());
  if (!harvested.ok()) Log(LogLevel::kWarn, "the cache could not be emptied: ", harvested.status().message());
  frames_.Trim();
}

}  // namespace weir
