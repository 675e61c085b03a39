// What happens to the blocks and the mapped ranges of one device, in its exact order, for whoever watches.
//
// Adding is guarded by the device's mutex, so an address that comes back is told after it went. While nobody watches, an
// event costs one relaxed load. Watching is a matter of the process, the events are a device's.
#ifndef WEIR_ALLOCATOR_BLOCK_EVENTS_H_
#define WEIR_ALLOCATOR_BLOCK_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

enum class EventKind : uint8_t {
  kAllocated,
  kFreeRequested,  // the job gave the block back
  kFreed,          // its bytes may be reused: at once, or after the recorded streams have passed
  kMapped,         // a range got frames
  kUnmapped,       // a free range lost them
  kEvicted,        // an extent lost them: its bytes are in a tier
  kFetched,        // it has them back
  kForgotten,      // its last block was freed while it was evicted
};

struct BlockEvent {
  EventKind kind = EventKind::kAllocated;
  DeviceAddr addr;
  Bytes size;           // of a block what was requested
  Stream stream;        // of the block's or range's allocation
  uint64_t number = 0;  // Block::number; zero for ranges
  const void* cause = nullptr;
};

class BlockEvents {
 public:
  static void Watch(bool on) { watched_.store(on, std::memory_order_relaxed); }
  static bool Watched() { return watched_.load(std::memory_order_relaxed); }
  // What the calling thread does from now on is `cause` of (opaque, any lifetime). Returns what was set before.
  static const void* SetCause(const void* cause) { return std::exchange(cause_, cause); }

  void Add(EventKind kind, DeviceAddr addr, Bytes size, Stream stream, uint64_t number = 0) {
    if (Watched()) [[unlikely]]
      AddWatched(BlockEvent{kind, addr, size, stream, number, nullptr});
  }
  // All events since the last call.
  std::vector<BlockEvent> Take() { return std::exchange(events_, {}); }

 private:
  __attribute__((noinline)) void AddWatched(BlockEvent event) {
    event.cause = cause_;
    events_.push_back(event);
  }

  static inline std::atomic<bool> watched_{false};
  static inline thread_local const void* cause_ = nullptr;
  std::vector<BlockEvent> events_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BLOCK_EVENTS_H_
