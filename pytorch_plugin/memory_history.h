// torch.cuda.memory._record_memory_history: what happened to memory, with the stack of who asked for it.
//
// The core tells what happened and in which order (core_abi_events.h); here it becomes torch's trace entries, in a ring per
// device, and the contexts of live blocks. Any thread, with or without the GIL. A context is made before the core is called
// and dies after every lock is released (R8). Off, a call costs one relaxed load.
//
// An eviction is told as segment_map of the range in the pool kEvictedPool, then segment_unmap of the card's; a fetch the
// other way round, again with segment_map first. So every live block lies in a segment at every moment of the trace, without
// which torch's viewer fails.
#ifndef WEIR_PYTORCH_PLUGIN_MEMORY_HISTORY_H_
#define WEIR_PYTORCH_PLUGIN_MEMORY_HISTORY_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/history_cause.h"

namespace weir::plugin {

using c10::CachingDeviceAllocator::AnnotationEntry;
using c10::CachingDeviceAllocator::CreateContextFn;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

// `segment_pool_id` of what is not on the card. No pool of torch's has such an id: of theirs one half is zero. Small, since
// torch 2.11 drops a reference too many to the numbers that memory_snapshot is given, and Python keeps only these for ever.
inline constexpr c10::MempoolId_t kEvictedPool{200, 200};

namespace internal {
inline std::atomic<bool> watched{false};
}
// The history is recorded, or a tracker is attached.
inline bool Watched() { return internal::watched.load(std::memory_order_relaxed); }

// Around each call of the core that allocates, frees or moves: the cause of what it does, and what it did is taken over when
// it ends. `level`: from which level on the stack is wanted.
class WatchedCall {
 public:
  explicit WatchedCall(RecordContext level) {
    if (C10_UNLIKELY(Watched())) Begin(level);
  }
  ~WatchedCall() {
    if (C10_UNLIKELY(cause_.has_value())) End();
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  // It ended in an OutOfMemoryError, while `free` bytes could be handed out.
  void OutOfMemory(int device, uint64_t requested, uint64_t free, void* stream);

 private:
  void Begin(RecordContext level) noexcept;
  void End() noexcept;

  std::optional<Cause> cause_;
  const void* before_ = nullptr;
};

// Takes over what the core has done since the last time, by whoever.
void TakeEvents() noexcept;

// As torch means them; see CUDAAllocator. Throws c10::Error for an action that torch does not know.
void RecordHistory(bool enabled, CreateContextFn create, size_t max_entries, RecordContext when, bool clear,
                   const std::vector<std::string>& skip_actions);
bool HistoryIsOn();
void RecordAnnotation(const std::vector<std::pair<std::string, std::string>>& pairs);
// A note on the live block that begins at `address`.
void AnnotateBlock(const void* address, const std::string& metadata);
// Of whoever allocated the live block that begins at `address`; null: unknown.
Context ContextOf(const void* address);
// Somebody attached a tracker (trace_trackers.h).
void WatchForTrackers();

// What the history knows of one device, and what was there at the same moment.
struct DeviceRecord {
  const WeirSnapshot* blocks = nullptr;           // to be given back; null: nothing there
  std::unordered_map<uint64_t, Context> context;  // of a block, by the number of its allocation
  std::vector<TraceEntry> trace;                  // oldest first; times are microseconds
};
DeviceRecord RecordOf(int device, bool with_trace);
// Tells that a snapshot was taken, in which `active` bytes were in use.
void RecordSnapshot(int device, uint64_t active);
std::vector<AnnotationEntry> Annotations();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_MEMORY_HISTORY_H_
