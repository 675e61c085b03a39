#include "pytorch_plugin/memory_snapshot.h"

#include <memory>
#include <span>
#include <utility>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {
namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::cuda::CUDACachingAllocator::SnapshotInfo;

struct DropSnapshot {
  void operator()(const WeirSnapshot* snapshot) const { weir_drop_snapshot(snapshot); }
};

BlockInfo BlockOf(const WeirBlock& from) {
  BlockInfo block;
  block.size = from.bytes;
  block.requested_size = from.requested;
  block.allocated = from.state == WEIR_BLOCK_ALLOCATED;
  block.active = from.state != WEIR_BLOCK_FREE;
  return block;
}

SegmentInfo SegmentOf(int device, const WeirSegment& from) {
  SegmentInfo segment;
  segment.device = static_cast<c10::DeviceIndex>(device);
  segment.address = from.address;
  segment.total_size = from.bytes;
  segment.stream = from.stream;
  segment.is_large = from.small == 0;
  segment.is_expandable = from.state == WEIR_SEGMENT_CACHED || from.state == WEIR_SEGMENT_UNMAPPED;
  if (from.state == WEIR_SEGMENT_EVICTED) segment.owner_private_pool_id = kEvictedPool;
  for (const WeirBlock& each : std::span(from.blocks, from.block_count)) {
    const BlockInfo& block = segment.blocks.emplace_back(BlockOf(each));
    if (block.allocated) segment.allocated_size += block.size;
    if (block.active) {
      segment.active_size += block.size;
      segment.requested_size += block.requested_size;
    }
  }
  return segment;
}

void AddDevice(int device, c10::MempoolId_t pool, SnapshotInfo* to) {
  const std::unique_ptr<const WeirSnapshot, DropSnapshot> from(weir_take_snapshot(device));
  if (from == nullptr) return;
  for (const WeirSegment& each : std::span(from->segments, from->segment_count)) {
    SegmentInfo segment = SegmentOf(device, each);
    if (pool == c10::MempoolId_t{0, 0} || pool == segment.owner_private_pool_id) {
      to->segments.push_back(std::move(segment));
    }
  }
}

}  // namespace

SnapshotInfo TakeSnapshot(int device_count, c10::MempoolId_t pool, bool /*include_traces*/) {
  SnapshotInfo snapshot{};
  snapshot.device_traces.resize(static_cast<size_t>(device_count));
  for (int device = 0; device < device_count; ++device) AddDevice(device, pool, &snapshot);
  return snapshot;
}

}  // namespace weir::plugin
