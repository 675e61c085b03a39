#include "pytorch_plugin/memory_snapshot.h"

#include <limits>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/memory_history.h"
#include "pytorch_plugin/refuse.h"

namespace weir::plugin {
namespace {

using c10::CachingDeviceAllocator::BlockInfo;
using c10::CachingDeviceAllocator::SegmentInfo;
using c10::cuda::CUDACachingAllocator::AllocatorConfigInfo;
using c10::cuda::CUDACachingAllocator::SnapshotInfo;

struct DropSnapshot {
  void operator()(const WeirSnapshot* snapshot) const { weir_drop_snapshot(snapshot); }
};

using Contexts = std::unordered_map<uint64_t, Context>;

BlockInfo BlockOf(const WeirBlock& from, const Contexts& contexts) {
  BlockInfo block;
  block.size = from.bytes;
  block.requested_size = from.requested;
  block.allocated = from.state == WEIR_BLOCK_ALLOCATED;
  block.active = from.state != WEIR_BLOCK_FREE;
  if (const auto it = contexts.find(from.number); it != contexts.end()) {
    block.context_when_allocated = it->second;
  }
  return block;
}

SegmentInfo SegmentOf(int device, const WeirSegment& from, const Contexts& contexts) {
  SegmentInfo segment;
  segment.device = static_cast<c10::DeviceIndex>(device);
  segment.address = from.address;
  segment.total_size = from.bytes;
  segment.stream = from.stream;
  segment.is_large = from.small == 0;
  segment.is_expandable = from.state == WEIR_SEGMENT_CACHED || from.state == WEIR_SEGMENT_UNMAPPED;
  if (from.state == WEIR_SEGMENT_EVICTED) segment.owner_private_pool_id = kEvictedPool;
  for (const WeirBlock& each : std::span(from.blocks, from.block_count)) {
    const BlockInfo& block = segment.blocks.emplace_back(BlockOf(each, contexts));
    if (block.allocated) segment.allocated_size += block.size;
    if (block.active) {
      segment.active_size += block.size;
      segment.requested_size += block.requested_size;
    }
  }
  return segment;
}

// A range was mapped as a whole and may have been cut into several segments since. A viewer that plays the trace backwards
// takes each range out of one segment, so such an entry is cut where a segment begins.
std::vector<TraceEntry> CutAtSegments(std::vector<TraceEntry> trace, const std::set<size_t>& begins) {
  std::vector<TraceEntry> cut;
  cut.reserve(trace.size());
  for (TraceEntry& entry : trace) {
    if (entry.action_ == TraceEntry::SEGMENT_MAP) {
      const size_t end = entry.addr_ + entry.size_;
      for (auto at = begins.upper_bound(entry.addr_); at != begins.end() && *at < end; ++at) {
        TraceEntry& part = cut.emplace_back(entry);
        part.size_ = *at - part.addr_;
        entry.addr_ = *at;
        entry.size_ = end - *at;
      }
    }
    cut.push_back(std::move(entry));
  }
  return cut;
}

void AddDevice(int device, c10::MempoolId_t pool, bool include_trace, SnapshotInfo* to) {
  DeviceRecord record = RecordOf(device, include_trace);
  const std::unique_ptr<const WeirSnapshot, DropSnapshot> from(record.blocks);
  if (from == nullptr) return;
  size_t active = 0;
  std::set<size_t> begins;
  for (const WeirSegment& each : std::span(from->segments, from->segment_count)) {
    SegmentInfo segment = SegmentOf(device, each, record.context);
    active += segment.active_size;
    begins.insert(segment.address);
    if (pool == c10::MempoolId_t{0, 0} || pool == segment.owner_private_pool_id) {
      to->segments.push_back(std::move(segment));
    }
  }
  to->device_traces[static_cast<size_t>(device)] = CutAtSegments(std::move(record.trace), begins);
  RecordSnapshot(device, active);
}

// What torch's native allocator would do with its settings: of these Weir knows none, so each is what means "not at all".
AllocatorConfigInfo Settings() {
  AllocatorConfigInfo settings{};
  settings.max_split_size = std::numeric_limits<size_t>::max();
  settings.last_allocator_settings =
      c10::CachingAllocator::AcceleratorAllocatorConfig::last_allocator_settings();
  return settings;
}

}  // namespace

SnapshotInfo TakeSnapshot(int device_count, c10::MempoolId_t pool, bool include_traces) {
  // Who asks for one pool's segments (NCCL) may keep their addresses, and Weir's blocks may leave.
  if (pool != c10::MempoolId_t{0, 0} && pool != kEvictedPool) Refuse("the snapshot of one memory pool");
  SnapshotInfo snapshot{};
  snapshot.device_traces.resize(static_cast<size_t>(device_count));
  for (int device = 0; device < device_count; ++device) AddDevice(device, pool, include_traces, &snapshot);
  if (include_traces) snapshot.external_annotations = Annotations();
  snapshot.config_metadata = Settings();
  return snapshot;
}

}  // namespace weir::plugin
