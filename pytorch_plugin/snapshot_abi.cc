// The part of the C ABI that tells what a device holds: the core's snapshot in C structs.
#include <memory>
#include <vector>

#include "allocator/device_snapshot.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/runtime.h"

namespace weir {
namespace {

// What a WeirSnapshot points into.
struct ExportedSnapshot {
  WeirSnapshot head{};  // first: its address is this object's
  std::vector<WeirSegment> segments;
  std::vector<WeirBlock> blocks;
};

int32_t Export(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return WEIR_BLOCK_FREE;
    case BlockState::kAllocated:
      return WEIR_BLOCK_ALLOCATED;
    case BlockState::kAwaitingFree:
      break;
  }
  return WEIR_BLOCK_AWAITING_FREE;
}

int32_t Export(SegmentState state) {
  switch (state) {
    case SegmentState::kResident:
      return WEIR_SEGMENT_RESIDENT;
    case SegmentState::kCached:
      return WEIR_SEGMENT_CACHED;
    case SegmentState::kEvicted:
      return WEIR_SEGMENT_EVICTED;
    case SegmentState::kUnmapped:
      break;
  }
  return WEIR_SEGMENT_UNMAPPED;
}

std::unique_ptr<ExportedSnapshot> Export(const DeviceSnapshot& from) {
  auto to = std::make_unique<ExportedSnapshot>();
  to->blocks.reserve(from.blocks.size());
  for (const BlockView& block : from.blocks) {
    to->blocks.push_back(WeirBlock{block.addr.value(), block.size.count(), block.requested.count(),
                                   block.number, Export(block.state)});
  }
  for (const SegmentView& segment : from.segments) {
    to->segments.push_back(WeirSegment{segment.addr.value(), segment.size.count(),
                                       reinterpret_cast<void*>(segment.stream.handle()),
                                       Export(segment.state), segment.kind == ExtentKind::kSlab ? 1 : 0,
                                       to->blocks.data() + segment.first_block, segment.block_count});
  }
  to->head = WeirSnapshot{to->segments.data(), to->segments.size()};
  return to;
}

}  // namespace
}  // namespace weir

using namespace weir;  // NOLINT: this file is the boundary of the namespace

extern "C" {

const WeirSnapshot* weir_take_snapshot(int32_t index) {
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr) return nullptr;
  return &Export(device->allocator->Snapshot()).release()->head;
}

void weir_drop_snapshot(const WeirSnapshot* snapshot) {
  delete reinterpret_cast<const ExportedSnapshot*>(snapshot);
}

}  // extern "C"
