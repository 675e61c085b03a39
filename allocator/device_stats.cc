// Counting, and the invariants of the whole device.
#include <algorithm>

#include "allocator/device_allocator.h"

namespace weir {
namespace {

int64_t Count(Bytes bytes) { return static_cast<int64_t>(bytes.count()); }

Pool PoolBySize(Bytes requested) { return requested <= kSmallRequest ? kSmallPool : kLargePool; }

// Inlined: `up` is known where it is called.
template <typename Stats>
inline __attribute__((always_inline)) void Add(Stats& stats, Pool pool, int64_t amount, bool up) {
  if (up) {
    stats[kAllPools].Add(amount);
    stats[pool].Add(amount);
  } else {
    stats[kAllPools].Take(amount);
    stats[pool].Take(amount);
  }
}

}  // namespace

void DeviceAllocator::CountAllocatedLocked(const Block* block) {
  const Pool pool = PoolBySize(block->requested);
  Add(counters_.blocks, pool, 1, true);
  Add(counters_.active, pool, 1, true);
  Add(counters_.bytes, pool, Count(block->size), true);
  Add(counters_.active_bytes, pool, Count(block->size), true);
  Add(counters_.requested, pool, Count(block->requested), true);
}

void DeviceAllocator::CountFreedLocked(const Block* block) {
  const Pool pool = PoolBySize(block->requested);
  Add(counters_.blocks, pool, 1, false);
  Add(counters_.bytes, pool, Count(block->size), false);
}

void DeviceAllocator::CountReleasedLocked(const Block* block) {
  const Pool pool = PoolBySize(block->requested);
  Add(counters_.active, pool, 1, false);
  Add(counters_.active_bytes, pool, Count(block->size), false);
  Add(counters_.requested, pool, Count(block->requested), false);
}

void DeviceAllocator::CountOutsideBlock(Bytes size, Bytes requested, bool live) {
  LockHolder lock(&mutex_);
  const Pool pool = PoolBySize(requested);
  Add(counters_.blocks, pool, 1, live);
  Add(counters_.active, pool, 1, live);
  Add(counters_.bytes, pool, Count(size), live);
  Add(counters_.active_bytes, pool, Count(size), live);
  Add(counters_.requested, pool, Count(requested), live);
}

void DeviceAllocator::CountOutsideSegmentLocked(Bytes bytes, bool taken) {
  Add(counters_.extents, kLargePool, 1, taken);
  Add(counters_.reserved, kLargePool, Count(bytes), taken);
}

void DeviceAllocator::CountExtentLocked(const Extent* extent, bool with_frames) {
  Pool pool = extent->kind == ExtentKind::kSlab ? kSmallPool : kLargePool;
  Add(counters_.extents, pool, 1, with_frames);
  Add(counters_.reserved, pool, Count(extent->bytes()), with_frames);
}

DeviceCounters DeviceAllocator::Counters() {
  LockHolder lock(&mutex_);
  return counters_;
}

void DeviceAllocator::ResetPeaks() {
  LockHolder lock(&mutex_);
  for (int pool = 0; pool < kPoolCount; ++pool) {
    for (Stat* stat : {&counters_.blocks[pool], &counters_.bytes[pool], &counters_.requested[pool],
                       &counters_.active[pool], &counters_.active_bytes[pool], &counters_.extents[pool],
                       &counters_.reserved[pool]}) {
      stat->ResetPeak();
    }
  }
  frames_.ResetPeak();
}

void DeviceAllocator::ResetAccumulated() {
  LockHolder lock(&mutex_);
  for (int pool = 0; pool < kPoolCount; ++pool) {
    for (Stat* stat : {&counters_.blocks[pool], &counters_.bytes[pool], &counters_.requested[pool],
                       &counters_.active[pool], &counters_.active_bytes[pool], &counters_.extents[pool],
                       &counters_.reserved[pool]}) {
      stat->ResetAccumulated();
    }
  }
  counters_.retries = counters_.out_of_memory = 0;
}

Bytes DeviceAllocator::Floor() {
  LockHolder lock(&mutex_);
  return Bytes(static_cast<uint64_t>(counters_.reserved[kSmallPool].current));
}

Bytes DeviceAllocator::PeakFloor() {
  LockHolder lock(&mutex_);
  return Bytes(static_cast<uint64_t>(counters_.reserved[kSmallPool].peak));
}

Bytes DeviceAllocator::FreeWithoutEvicting() {
  PageCount available = frames_.Available();
  LockHolder lock(&mutex_);
  const PageCount last = last_large_ == nullptr ? PageCount() : last_large_->pages.count;
  return (available + pages_.mapped_free() + last).bytes();
}

Bytes DeviceAllocator::Cached() {
  const PageCount pooled = frames_.pooled();
  LockHolder lock(&mutex_);
  const PageCount last = last_large_ == nullptr ? PageCount() : last_large_->pages.count;
  return (pooled + pages_.mapped_free() + last).bytes();
}

Bytes DeviceAllocator::LargestFree() { return FreeWithoutEvicting(); }

uint64_t DeviceAllocator::SteadyDriverCalls() {
  LockHolder lock(&mutex_);
  for (const CallMark& mark : call_marks_) {
    if (mark.allocations >= allocations_ / 2) return driver_.calls() - mark.calls;
  }
  return driver_.calls();
}

bool DeviceAllocator::IsValid() {
  LockHolder lock(&mutex_);
  if (!pages_.IsValid()) return false;
  PageCount with_frames = pages_.mapped_free();
  for (const Extent* extent : extents_) {
    if (!extent->IsValid()) return false;
    if (extent->MayLeave() && extent->in_leaving_order == InLeavingOrder::kNo) return false;
    if (extent->HasFrames()) with_frames += extent->pages.count;
  }
  return with_frames + frames_.pooled() <= frames_.held() && frames_.counted() <= frames_.cap();
}

}  // namespace weir
