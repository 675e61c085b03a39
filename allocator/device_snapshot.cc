#include "allocator/device_snapshot.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "allocator/device_allocator.h"

namespace weir {
namespace {

void AddExtent(const Extent& extent, DeviceAddr base, const absl::flat_hash_set<const Block*>& pending,
               DeviceSnapshot* to) {
  SegmentView segment{base, extent.bytes(), extent.stream};
  segment.state = extent.HasFrames() ? SegmentState::kResident : SegmentState::kEvicted;
  segment.kind = extent.kind;
  segment.first_block = to->blocks.size();
  for (const Block* block = extent.first; block != nullptr; block = block->after) {
    BlockView view{block->addr, block->size, block->requested};
    if (!block->IsFree()) {
      view.number = block->number;
      view.state = pending.contains(block) ? BlockState::kAwaitingFree : BlockState::kAllocated;
    }
    to->blocks.push_back(view);
  }
  segment.block_count = to->blocks.size() - segment.first_block;
  to->segments.push_back(segment);
}

// One free block as large as the segment.
void AddEmpty(SegmentView segment, DeviceSnapshot* to) {
  segment.first_block = to->blocks.size();
  segment.block_count = 1;
  to->blocks.push_back(BlockView{segment.addr, segment.size, Bytes()});
  to->segments.push_back(segment);
}

}  // namespace

DeviceSnapshot DeviceAllocator::Snapshot() {
  DeviceSnapshot snapshot;
  PageCount mapped;
  LockHolder lock(&mutex_);
  absl::flat_hash_set<const Block*> pending;
  for (const PendingFree& free : pending_) pending.insert(free.block);
  for (const Extent* extent : extents_) {
    AddExtent(*extent, space_->AddressOf(extent->pages), pending, &snapshot);
    if (extent->HasFrames()) mapped += extent->pages.count;
  }
  pages_.ForEachMapped([&](PageRun run, Stream stream) {
    AddEmpty(SegmentView{space_->AddressOf(run), run.count.bytes(), stream, SegmentState::kCached},
             &snapshot);
    mapped += run.count;
  });
  if (const PageCount held = frames_.held(); held > mapped) {
    const DeviceAddr end = space_->AddressOf(PageRun{space_->size().count(), PageCount()});
    AddEmpty(SegmentView{end, (held - mapped).bytes(), Stream(), SegmentState::kUnmapped}, &snapshot);
  }
  std::sort(snapshot.segments.begin(), snapshot.segments.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.addr < b.addr; });
  return snapshot;
}

std::vector<BlockEvent> DeviceAllocator::TakeEvents() {
  LockHolder lock(&mutex_);
  return block_events_.Take();
}

}  // namespace weir
