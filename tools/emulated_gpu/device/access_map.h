// Who wrote and read each place last, for the happens-before check. Used under the lock of order.cc.
//
// A place is where bytes are, not how they are addressed: two mappings of one frame are the same place. Accesses may be
// rows with a pitch; two of them meet only if bytes of their rows do, so disjoint columns never conflict.
#ifndef WEIR_EMULATED_GPU_DEVICE_ACCESS_MAP_H_
#define WEIR_EMULATED_GPU_DEVICE_ACCESS_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/emulated_gpu/device/clocks.h"

namespace weir::emulated {

using Place = uint64_t;

// Rows of `width` bytes, `pitch` apart; one row begins at `phase`. A pitch of 0 means every byte.
struct Pattern {
  Place phase = 0;
  uint64_t pitch = 0, width = 0;
  bool operator==(const Pattern& other) const {
    return pitch == other.pitch &&
           (pitch == 0 || (width == other.width && phase % pitch == other.phase % pitch));
  }
};

// True when both have a byte in common in [begin, end). Looks at no more than some thousand rows: beyond, false.
bool Meet(const Pattern& one, const Pattern& other, Place begin, Place end);

struct PlaceAccess {
  uint32_t index = 0;  // of the stream
  Tick tick = 0;
  uint64_t work = 0;  // the caller's number, which grows
  bool write = false;
  Pattern pattern;
};

class AccessMap {
 public:
  // Adds an access to [begin, end) and gives the first earlier one that it conflicts with and that is neither complete
  // nor in `past`, or none: false. Accesses of works with higher numbers, where this one is told late, are no earlier ones.
  bool Add(Place begin, Place end, const PlaceAccess& access, const Past& past, const Ticks& completed,
           PlaceAccess* conflict);
  // A write in [begin, end) that is not complete.
  bool HasWriter(Place begin, Place end, const Ticks& completed) const;
  // The place holds other bytes from now on.
  void Forget(Place begin, Place end);
  size_t size() const { return segments_.size(); }

 private:
  struct Segment {
    Place end;
    std::vector<PlaceAccess> accesses;
  };
  using Segments = std::map<Place, Segment>;

  Segments::iterator SplitAt(Place place);
  void DropComplete(const Ticks& completed);

  Segments segments_;  // by begin; they do not overlap
  size_t drop_at_ = 1024;
};

}  // namespace weir::emulated

#endif
