#include "pytorch_plugin/device_history.h"

#include <c10/util/ApproximateClock.h>

#include <span>
#include <string>
#include <utility>

#include "pytorch_plugin/memory_history.h"

namespace weir::plugin {
namespace {

constexpr c10::MempoolId_t kNoPool{0, 0};
constexpr const char* kInRam = R"({"weir":{"tier":"ram"}})";

EventEntry Entry(const WeirEvent& event, TraceEntry::Action action, c10::MempoolId_t pool, Context context) {
  const auto* cause = static_cast<const Cause*>(event.cause);
  const bool evicted = pool == kEvictedPool;
  return EventEntry{TraceEntry(action, static_cast<c10::DeviceIndex>(event.device), event.address,
                               event.bytes, event.stream, pool, c10::getApproximateTime(), std::move(context),
                               cause == nullptr ? std::string("N/A") : cause->compile_context,
                               evicted ? kInRam : (cause == nullptr ? std::string() : cause->user_metadata)),
                    !evicted};
}

}  // namespace

Context DeviceHistory::TakeBlock(const WeirEvent& event, const Context& context,
                                 std::vector<Context>* dropped) {
  if (event.kind == WEIR_EVENT_ALLOCATED) {
    LiveBlock& block = live_[event.address];
    dropped->push_back(std::move(block.context));  // of a block whose end was not seen
    dropped->push_back(std::move(block.freed));
    block = LiveBlock{event.number, event.bytes, event.stream, context, nullptr};
    return context;
  }
  const auto it = live_.find(event.address);
  if (it == live_.end() || it->second.number != event.number) return context;
  LiveBlock& block = it->second;
  if (event.kind == WEIR_EVENT_FREE_REQUESTED) {
    block.freed = context != nullptr ? context : block.context;
    return block.freed;
  }
  Context freed = block.freed;
  dropped->push_back(std::move(block.context));
  dropped->push_back(std::move(block.freed));
  live_.erase(it);
  return freed;
}

std::vector<EventEntry> DeviceHistory::Take(const WeirEvent& event, bool stacks,
                                            std::vector<Context>* dropped) {
  using enum TraceEntry::Action;
  const auto* cause = static_cast<const Cause*>(event.cause);
  Context context = cause == nullptr ? nullptr : cause->context;
  if (event.number != 0) context = TakeBlock(event, context, dropped);
  if (!stacks) context = nullptr;
  std::vector<EventEntry> entries;
  const auto add = [&](TraceEntry::Action action, c10::MempoolId_t pool = kNoPool) {
    entries.push_back(Entry(event, action, pool, context));
  };
  switch (event.kind) {
    case WEIR_EVENT_ALLOCATED:
      add(ALLOC);
      break;
    case WEIR_EVENT_FREE_REQUESTED:
      add(FREE_REQUESTED);
      break;
    case WEIR_EVENT_FREED:
      add(FREE_COMPLETED);
      break;
    case WEIR_EVENT_MAPPED:
      add(SEGMENT_MAP);
      break;
    case WEIR_EVENT_UNMAPPED:
      add(SEGMENT_UNMAP);
      break;
    case WEIR_EVENT_EVICTED:
      add(SEGMENT_MAP, kEvictedPool);
      add(SEGMENT_UNMAP);
      break;
    case WEIR_EVENT_FETCHED:
      add(SEGMENT_MAP);
      add(SEGMENT_UNMAP, kEvictedPool);
      break;
    case WEIR_EVENT_FORGOTTEN:
      add(SEGMENT_UNMAP, kEvictedPool);
      break;
  }
  return entries;
}

std::optional<LiveBlock> DeviceHistory::Find(uint64_t address) const {
  const auto it = live_.find(address);
  return it == live_.end() ? std::nullopt : std::optional<LiveBlock>(it->second);
}

std::unordered_map<uint64_t, Context> DeviceHistory::ContextsOf(const WeirSnapshot& snapshot,
                                                                std::vector<Context>* dropped) {
  std::unordered_map<uint64_t, Context> contexts;
  std::unordered_map<uint64_t, LiveBlock> still;
  for (const WeirSegment& segment : std::span(snapshot.segments, snapshot.segment_count)) {
    for (const WeirBlock& block : std::span(segment.blocks, segment.block_count)) {
      const auto it = live_.find(block.address);
      if (block.number == 0 || it == live_.end() || it->second.number != block.number) continue;
      contexts[block.number] = it->second.context;
      still.insert(live_.extract(it));
    }
  }
  for (auto& [address, block] : live_) {
    dropped->push_back(std::move(block.context));
    dropped->push_back(std::move(block.freed));
  }
  live_ = std::move(still);
  return contexts;
}

}  // namespace weir::plugin
