// When one engine is busy: intervals that do not overlap, in order. Times are computed when work is enqueued, and work
// takes the first gap that it fits into, so work that is enqueued later can run earlier. Values.
#ifndef WEIR_EMULATED_GPU_DEVICE_BUSY_TIMES_H_
#define WEIR_EMULATED_GPU_DEVICE_BUSY_TIMES_H_

#include <algorithm>
#include <cstddef>
#include <deque>

#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

struct Interval {
  Nanos begin, end;
};

class BusyTimes {
 public:
  // Takes the first gap from `ready` on that holds what begins in it: `length(begin)` is how long that is. Returns where it
  // lies.
  template <typename Length>
  Interval Take(Nanos ready, Length length) {
    ready = std::max(ready, floor_);
    auto next = std::upper_bound(intervals_.begin(), intervals_.end(), ready,
                                 [](Nanos time, const Interval& interval) { return time < interval.end; });
    for (; next != intervals_.end(); ++next) {  // the interval after the gap
      const Nanos long_ = length(ready);
      if (ready + long_ <= next->begin) return Put(next, {ready, ready + long_});
      ready = std::max(ready, next->end);
    }
    return Put(next, {ready, ready + length(ready)});
  }

  // Calls with each part of [begin, end) in order, and whether it is busy.
  template <typename Function>
  void ForEachPart(Nanos begin, Function function) const {
    auto next = std::upper_bound(intervals_.begin(), intervals_.end(), begin,
                                 [](Nanos time, const Interval& interval) { return time < interval.end; });
    for (; next != intervals_.end(); ++next) {
      if (begin < next->begin && !function(Interval{begin, next->begin}, false)) return;
      begin = std::max(begin, next->begin);
      if (!function(Interval{begin, next->end}, true)) return;
      begin = next->end;
    }
    function(Interval{begin, kForever}, false);
  }

  Nanos busy() const { return busy_; }
  Nanos end() const { return intervals_.empty() ? floor_ : intervals_.back().end; }

  static constexpr Nanos kForever = Nanos{1} << 62;

 private:
  using Position = std::deque<Interval>::iterator;

  Interval Put(Position next, Interval added) {
    busy_ += added.end - added.begin;
    if (added.end == added.begin) return added;
    const bool after_last = next != intervals_.begin() && std::prev(next)->end == added.begin;
    const bool before_next = next != intervals_.end() && next->begin == added.end;
    if (after_last && before_next) {
      std::prev(next)->end = next->end;
      intervals_.erase(next);
    } else if (after_last) {
      std::prev(next)->end = added.end;
    } else if (before_next) {
      next->begin = added.begin;
    } else {
      intervals_.insert(next, added);
    }
    if (intervals_.size() > kMost) {
      floor_ = intervals_.front().end;
      intervals_.pop_front();
    }
    return added;
  }

  // More gaps than a host thread can be behind another; the oldest are closed.
  static constexpr size_t kMost = 4096;
  std::deque<Interval> intervals_;
  Nanos floor_ = 0, busy_ = 0;
};

}  // namespace weir::emulated

#endif
