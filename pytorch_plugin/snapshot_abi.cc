// The parts of the C ABI that tell what a device holds, and what happens there: the core's snapshot and events in C structs.
#include <memory>
#include <vector>

#include "allocator/block_events.h"
#include "allocator/device_snapshot.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/core_abi_events.h"
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

static_assert(static_cast<int>(EventKind::kAllocated) == WEIR_EVENT_ALLOCATED &&
              static_cast<int>(EventKind::kFreeRequested) == WEIR_EVENT_FREE_REQUESTED &&
              static_cast<int>(EventKind::kFreed) == WEIR_EVENT_FREED &&
              static_cast<int>(EventKind::kMapped) == WEIR_EVENT_MAPPED &&
              static_cast<int>(EventKind::kUnmapped) == WEIR_EVENT_UNMAPPED &&
              static_cast<int>(EventKind::kEvicted) == WEIR_EVENT_EVICTED &&
              static_cast<int>(EventKind::kFetched) == WEIR_EVENT_FETCHED &&
              static_cast<int>(EventKind::kForgotten) == WEIR_EVENT_FORGOTTEN);

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

void weir_watch(int32_t on) { BlockEvents::Watch(on != 0); }
const void* weir_set_cause(const void* cause) { return BlockEvents::SetCause(cause); }

void weir_take_events(int32_t index, void (*each)(void* context, const WeirEvent* event), void* context) {
  Device* device = Runtime::Get().Find(index);
  if (device == nullptr) return;
  for (const BlockEvent& from : device->allocator->TakeEvents()) {
    const WeirEvent event{static_cast<int32_t>(from.kind),
                          index,
                          from.addr.value(),
                          from.size.count(),
                          from.number,
                          reinterpret_cast<void*>(from.stream.handle()),
                          from.cause};
    each(context, &event);
  }
}

}  // extern "C"
