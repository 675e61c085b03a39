// The memory of one pool: chunks taken from the device, cut into blocks and free ranges. Not thread-safe; what asks about
// pasts holds the lock of order.h.
#ifndef WEIR_EMULATED_GPU_DEVICE_POOL_RANGES_H_
#define WEIR_EMULATED_GPU_DEVICE_POOL_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/emulated_gpu/device/clocks.h"

namespace weir::emulated {

struct Stream;

struct ReuseRules {
  int follow_events = 1, opportunistic = 1, internal_dependencies = 1;
};

class PoolRanges {
 public:
  void AddChunk(uintptr_t begin, size_t size);

  // A range of `size` bytes for `stream`, whose past is up to date; 0 when nothing fits. It may have to wait for the free.
  uintptr_t TakeLocked(size_t size, Stream& stream, const ReuseRules& rules);
  // `past`: of the free.
  void Give(uintptr_t begin, size_t size, Past past);

  struct Chunk {
    uintptr_t begin;
    size_t size;
  };
  // Takes out chunks that are free as a whole and complete, as long as what is left is at least `keep`.
  std::vector<Chunk> TakeUnusedLocked(size_t keep);

  size_t reserved() const { return reserved_; }

 private:
  struct Range {
    size_t size;
    Past freed;
  };
  using Ranges = std::map<uintptr_t, Range>;

  void JoinCompleteLocked();
  // The smallest that fits and that `usable` takes.
  template <typename Usable>
  Ranges::iterator Smallest(size_t size, Usable&& usable);

  std::map<uintptr_t, size_t> chunks_;  // never adjacent
  Ranges free_;
  size_t reserved_ = 0;
};

}  // namespace weir::emulated

#endif
