// Counters of one device. Counting only; printing is elsewhere. Guarded by the device's mutex.
#ifndef WEIR_ALLOCATOR_STATS_H_
#define WEIR_ALLOCATOR_STATS_H_

#include <cstdint>

namespace weir {

// `current` now, `peak` since the last reset, and the sums of everything added and taken away.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;

  void Add(int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void Take(int64_t amount) {
    current -= amount;
    freed += amount;
  }
  void ResetPeak() { peak = current; }
  void ResetAccumulated() { allocated = freed = 0; }
};

// Index of a pool: all blocks, blocks in slabs, the others.
enum Pool : int { kAllPools = 0, kSmallPool = 1, kLargePool = 2, kPoolCount = 3 };

struct DeviceCounters {
  Stat blocks[kPoolCount];     // live blocks
  Stat bytes[kPoolCount];      // their rounded bytes, wherever they are
  Stat requested[kPoolCount];  // their requested bytes
  Stat waiting;                // bytes freed by the job that still wait for a recorded stream
  Stat extents[kPoolCount];    // extents with frames
  Stat reserved[kPoolCount];   // bytes of extents with frames, cached free ones included
  int64_t retries = 0;         // allocations that had to ask for room
  int64_t out_of_memory = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_STATS_H_
