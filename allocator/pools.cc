// Pools: lanes of their own in the heaps, until they end.
#include <algorithm>
#include <utility>

#include "allocator/device_allocator.h"

namespace weir {

PoolId DeviceAllocator::MakePool() {
  LockHolder lock(&mutex_);
  const PoolId pool(++pools_made_);
  pools_.emplace(pool, PoolTraits{});
  return pool;
}

void DeviceAllocator::KeepBlocksApart(PoolId pool) {
  LockHolder lock(&mutex_);
  if (auto at = pools_.find(pool); at != pools_.end()) at->second.blocks_apart = true;
}

PoolId DeviceAllocator::PoolOf(DeviceAddr addr) {
  LockHolder lock(&mutex_);
  const Block* block = FindBlockLocked(addr);
  return block == nullptr ? PoolId() : block->extent->pool;
}

void DeviceAllocator::EndPool(PoolId pool) {
  LockHolder lock(&mutex_);
  if (pools_.erase(pool) == 0) return;
  FlushSparesLocked();  // from here on what ends goes to the general heap
  for (Extent* extent : extents_) {
    if (extent->pool == pool) heap_.MoveToPool(extent, PoolId());
  }
  for (PageHeap::MappedRun& run : pages_.TakePool(pool)) PutMappedLocked(std::move(run));
  heap_.DropPool(pool);
}

ExtentKind DeviceAllocator::KindLocked(Bytes requested, PoolId pool) const {
  auto at = pools_.find(pool);
  return at != pools_.end() && at->second.blocks_apart ? ExtentKind::kLarge : layout_.KindOf(requested);
}

// A pool may have ended while its pages were with a thread that held no lock.
void DeviceAllocator::PutMappedLocked(PageHeap::MappedRun run) {
  run.lane = LiveLocked(run.lane);
  pages_.PutMapped(std::move(run));
}

}  // namespace weir
