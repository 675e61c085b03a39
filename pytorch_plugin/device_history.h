// The history of one device: its ring of entries, and who allocated the blocks that live. Not synchronised: guarded by the
// history's lock (memory_history.cc). Contexts that go are handed out, to die without a lock.
#ifndef WEIR_PYTORCH_PLUGIN_DEVICE_HISTORY_H_
#define WEIR_PYTORCH_PLUGIN_DEVICE_HISTORY_H_

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pytorch_plugin/core_abi_events.h"
#include "pytorch_plugin/history_cause.h"
#include "pytorch_plugin/trace_ring.h"

namespace weir::plugin {

// A block whose allocation was seen.
struct LiveBlock {
  uint64_t number = 0;  // of its allocation: after a time unwatched, another block may live at this address
  uint64_t bytes = 0;
  void* stream = nullptr;
  Context context;  // of who allocated it
  Context freed;    // of who gave it back, or the former where that is not recorded
};

struct EventEntry {
  c10::CachingDeviceAllocator::TraceEntry entry;
  bool for_trackers = true;  // false: of what is in a tier, at no address of the card
};

class DeviceHistory {
 public:
  // The trace entries of one event of the core, with contexts if `stacks`.
  std::vector<EventEntry> Take(const WeirEvent& event, bool stacks, std::vector<Context>* dropped);
  std::optional<LiveBlock> Find(uint64_t address) const;
  // The contexts of the blocks of `snapshot`, by number. Forgets what lives no more.
  std::unordered_map<uint64_t, Context> ContextsOf(const WeirSnapshot& snapshot,
                                                   std::vector<Context>* dropped);

  TraceRing<c10::CachingDeviceAllocator::TraceEntry> ring;

 private:
  // Follows the block; returns the context of its entry.
  Context TakeBlock(const WeirEvent& event, const Context& context, std::vector<Context>* dropped);

  std::unordered_map<uint64_t, LiveBlock> live_;  // by address
};

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_DEVICE_HISTORY_H_
