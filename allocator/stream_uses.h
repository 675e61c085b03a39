// Which streams used a piece of device memory, up to which point, and whether they have passed it.
// Not synchronised: guarded by the device's mutex (LockRank::kDeviceAllocator).
//
// A stream's work is numbered by epochs that Weir counts itself: StreamClock::Mark() says "something was queued here",
// and a fence (an event recorded after it, on which the host waits) moves `passed` up to it. Fences are recorded
// lazily, only when memory is about to be unmapped, so a use costs no driver call (R9).
#ifndef WEIR_ALLOCATOR_STREAM_USES_H_
#define WEIR_ALLOCATOR_STREAM_USES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "allocator/base/units.h"

namespace weir {

struct StreamUse {
  Stream stream;
  uint64_t epoch = 0;
};

// The last use per stream; usually one entry, which takes no memory of its own.
class StreamUses {
 public:
  void Add(StreamUse use) {
    for (StreamUse& known : std::span(data(), size())) {
      if (known.stream == use.stream) {
        if (known.epoch < use.epoch) known.epoch = use.epoch;
        return;
      }
    }
    if (many_.empty() && !has_one_) {
      one_ = use;
      has_one_ = true;
      return;
    }
    if (has_one_) many_.push_back(one_);
    has_one_ = false;
    many_.push_back(use);
  }
  void Add(const StreamUses& other) {
    for (const StreamUse& use : other.uses()) Add(use);
  }
  void Clear() {
    has_one_ = false;
    many_.clear();
  }
  // Valid until the next change.
  std::span<const StreamUse> uses() const { return {has_one_ ? &one_ : many_.data(), size()}; }

 private:
  size_t size() const { return has_one_ ? 1 : many_.size(); }
  StreamUse* data() { return has_one_ ? &one_ : many_.data(); }

  bool has_one_ = false;
  StreamUse one_{};
  std::vector<StreamUse> many_;  // all, if there is more than one
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
