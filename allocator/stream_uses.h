// Which streams used a piece of device memory, up to which point, and whether they have passed it.
// Not synchronised: guarded by the device's mutex (LockRank::kDeviceAllocator).
//
// A stream's work is numbered by epochs that Weir counts itself: StreamClock::Mark() says "something was queued here",
// and a fence (an event recorded after it, on which the host waits) moves `passed` up to it. Fences are recorded
// lazily, only when memory is about to be unmapped, so a use costs no driver call (R9).
#ifndef WEIR_ALLOCATOR_STREAM_USES_H_
#define WEIR_ALLOCATOR_STREAM_USES_H_

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

struct StreamUse {
  Stream stream;
  uint64_t epoch = 0;
};

// The last use per stream; usually one entry.
class StreamUses {
 public:
  void Add(StreamUse use) {
    for (StreamUse& known : uses_) {
      if (known.stream == use.stream) {
        if (known.epoch < use.epoch) known.epoch = use.epoch;
        return;
      }
    }
    uses_.push_back(use);
  }
  void Add(const StreamUses& other) {
    for (const StreamUse& use : other.uses_) Add(use);
  }
  void Clear() { uses_.clear(); }
  const std::vector<StreamUse>& uses() const { return uses_; }

 private:
  std::vector<StreamUse> uses_;
};

// Epochs of the streams of one device.
class StreamClock {
 public:
  // Work was queued on `stream` (or may have been) until now.
  StreamUse Mark(Stream stream) {
    Line& line = LineOf(stream);
    return StreamUse{stream, ++line.queued};
  }
  // The newest use of `stream`; what a fence recorded now will cover.
  StreamUse Newest(Stream stream) { return StreamUse{stream, LineOf(stream).queued}; }
  // The host has seen the end of `use`.
  void Passed(StreamUse use) {
    Line& line = LineOf(use.stream);
    if (line.passed < use.epoch) line.passed = use.epoch;
  }
  bool HasPassed(StreamUse use) { return LineOf(use.stream).passed >= use.epoch; }
  bool HavePassed(const StreamUses& uses) {
    for (const StreamUse& use : uses.uses()) {
      if (!HasPassed(use)) return false;
    }
    return true;
  }

 private:
  struct Line {
    Stream stream;
    uint64_t queued = 0;
    uint64_t passed = 0;
  };
  Line& LineOf(Stream stream) {
    for (Line& line : lines_) {
      if (line.stream == stream) return line;
    }
    lines_.push_back(Line{stream, 0, 0});
    return lines_.back();
  }
  std::vector<Line> lines_;  // tens at most: torch has 32 pool streams a priority
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_STREAM_USES_H_
