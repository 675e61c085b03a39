#include "pytorch_plugin/trace_trackers.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {
namespace {

using List = std::vector<AllocatorTraceTracker>;

struct Trackers {
  std::atomic<bool> any{false};
  std::mutex mutex;  // a leaf
  std::shared_ptr<const List> list = std::make_shared<const List>();
  std::vector<TraceEntry> queue;
  bool telling = false;
};

Trackers& All() {
  static auto* trackers = new Trackers;  // never destroyed: blocks are freed while the process exits
  return *trackers;
}

void Tell(const List& trackers, const TraceEntry& entry) {
  for (const AllocatorTraceTracker& tracker : trackers) {
    try {
      tracker(entry);
    } catch (const std::exception& error) {
      weir_log(1, (std::string("an allocator trace tracker failed: ") + error.what()).c_str());
    } catch (...) {
      weir_log(1, "an allocator trace tracker failed");
    }
  }
}

// False: nothing to tell, or another thread (or a caller further up this one) is at it.
bool TakeTurn(std::vector<TraceEntry>* entries, std::shared_ptr<const List>* list) {
  Trackers& all = All();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.telling || all.queue.empty()) return false;
  all.telling = true;
  entries->swap(all.queue);
  *list = all.list;
  return true;
}

void EndTurn() {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().telling = false;
}

}  // namespace

void AttachTracker(AllocatorTraceTracker tracker) {
  Trackers& all = All();
  std::shared_ptr<const List> before;  // dies after the lock is released
  std::lock_guard<std::mutex> lock(all.mutex);
  auto list = std::make_shared<List>(*all.list);
  list->push_back(std::move(tracker));
  before = std::exchange(all.list, std::move(list));
  all.any.store(true, std::memory_order_relaxed);
}

bool HasTrackers() { return All().any.load(std::memory_order_relaxed); }

void QueueForTrackers(const TraceEntry& entry) {
  std::lock_guard<std::mutex> lock(All().mutex);
  All().queue.push_back(entry);
}

void TellTrackers() noexcept {
  if (!HasTrackers()) return;
  for (;;) {
    std::vector<TraceEntry> entries;
    std::shared_ptr<const List> list;
    if (!TakeTurn(&entries, &list)) return;
    for (const TraceEntry& entry : entries) Tell(*list, entry);
    EndTurn();
  }
}

}  // namespace weir::plugin
