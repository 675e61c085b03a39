// Counters of one device. Counting only; printing is elsewhere. Guarded by the device's mutex.
#ifndef WEIR_ALLOCATOR_STATS_H_
#define WEIR_ALLOCATOR_STATS_H_

#include <cstdint>

#include "allocator/base/units.h"

namespace weir {

// `current` now, `peak` since the last reset, and the sums of everything added and taken away.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t current_at_reset = 0;  // of the sums

  void Add(int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void Take(int64_t amount) { current -= amount; }
  int64_t freed() const { return allocated + current_at_reset - current; }
  void ResetPeak() { peak = current; }
  void ResetAccumulated() {
    allocated = 0;
    current_at_reset = current;
  }
};

// Index of a pool. Of blocks, as torch's statistics have it: all, those of at most kSmallRequest, the others. Of extents: all,
// slabs, the others.
enum Pool : int { kAllPools = 0, kSmallPool = 1, kLargePool = 2, kPoolCount = 3 };

inline constexpr Bytes kSmallRequest = MiB(1);

// *Live*: not freed by the job. *Waiting*: freed, but not before a recorded stream has passed.
struct DeviceCounters {
  Stat blocks[kPoolCount];        // live
  Stat bytes[kPoolCount];         // their rounded bytes, wherever they are
  Stat requested[kPoolCount];     // requested bytes of those that are live or waiting
  Stat active[kPoolCount];        // live or waiting
  Stat active_bytes[kPoolCount];  // their rounded bytes
  Stat extents[kPoolCount];       // extents with frames
  Stat reserved[kPoolCount];      // bytes of extents with frames, cached free ones included
  int64_t retries = 0;            // allocations that had to ask for room
  int64_t out_of_memory = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_STATS_H_
