#include "tools/emulated_gpu/device/pool_ranges.h"

#include <utility>

#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/streams.h"

namespace weir::emulated {

void PoolRanges::AddChunk(uintptr_t begin, size_t size) {
  chunks_[begin] = size;
  free_[begin] = {size, {}};
  reserved_ += size;
}

void PoolRanges::JoinCompleteLocked() {
  for (auto range = free_.begin(); range != free_.end();) {
    const auto next = std::next(range);
    const bool joins = next != free_.end() && range->first + range->second.size == next->first &&
                       IsCompleteLocked(range->second.freed) && IsCompleteLocked(next->second.freed);
    if (!joins) {
      range = next;
      continue;
    }
    range->second.size += next->second.size;
    free_.erase(next);
  }
}

template <typename Usable>
PoolRanges::Ranges::iterator PoolRanges::Smallest(size_t size, Usable&& usable) {
  auto best = free_.end();
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const bool better =
        range->second.size >= size && (best == free_.end() || range->second.size < best->second.size);
    if (better && usable(range->second.freed)) best = range;
  }
  return best;
}

uintptr_t PoolRanges::TakeLocked(size_t size, Stream& stream, const ReuseRules& rules) {
  JoinCompleteLocked();
  auto range = Smallest(size, [&](const Past& freed) {
    if (freed.index == kNoIndex || freed.index == stream.past.index) return true;
    if (rules.follow_events != 0 && stream.past.Newest(freed.index) >= freed.tick) return true;
    return rules.opportunistic != 0 && IsCompleteLocked(freed);
  });
  if (range == free_.end() && rules.internal_dependencies != 0) {
    range = Smallest(size, [](const Past&) { return true; });
    if (range != free_.end()) StepLocked(stream, &range->second.freed);
  }
  if (range == free_.end()) return 0;
  const uintptr_t taken = range->first;
  const Range rest{range->second.size - size, range->second.freed};
  free_.erase(range);
  if (rest.size > 0) free_[taken + size] = rest;
  return taken;
}

void PoolRanges::Give(uintptr_t begin, size_t size, Past past) { free_[begin] = {size, std::move(past)}; }

std::vector<PoolRanges::Chunk> PoolRanges::TakeUnusedLocked(size_t keep) {
  JoinCompleteLocked();
  std::vector<Chunk> taken;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end();) {
    const auto range = free_.find(chunk->first);
    const bool unused = range != free_.end() && range->second.size == chunk->second &&
                        IsCompleteLocked(range->second.freed) && reserved_ - chunk->second >= keep;
    if (!unused) {
      ++chunk;
      continue;
    }
    taken.push_back({chunk->first, chunk->second});
    reserved_ -= chunk->second;
    free_.erase(range);
    chunk = chunks_.erase(chunk);
  }
  return taken;
}

}  // namespace weir::emulated
