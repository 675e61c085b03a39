// Whether the job's ops have to be watched: whether something may soon have to leave VRAM (R6).
//
// A job that repeats itself has its extents come and go in the same numbers. As long as it does, and its peak leaves some
// room under the cap, nothing will have to leave, and its ops need not be watched. What was never seen before ends that: more
// extents of one size alive at once, or more pages in all. Time is counted in allocations. Not synchronised: guarded by
// the device's mutex.
#ifndef WEIR_ALLOCATOR_WATCH_NEED_H_
#define WEIR_ALLOCATOR_WATCH_NEED_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/extent.h"

namespace weir {

class WatchNeed {
 public:
  // An extent is there, after `now` allocations. True: never before were there so many of its size, or so many pages.
  bool CountNew(const Extent& extent, uint64_t now) {
    const size_t bin = BinOf(extent);
    bool more = ++alive_[bin] > most_[bin];
    if (more) most_[bin] = alive_[bin];
    pages_ += extent.pages.count;
    if (pages_ > most_pages_) {
      most_pages_ = pages_;
      more = true;
    }
    if (more) last_change_ = now;
    return more;
  }
  void CountGone(const Extent& extent) {
    --alive_[BinOf(extent)];
    pages_ -= extent.pages.count;
  }
  // Something left or came back.
  void CountMove(uint64_t now) { last_change_ = now; }

  // The ops are watched from now on.
  void Begin(uint64_t now) { began_ = last_change_ = now; }
  bool IsQuiet(uint64_t now) const {
    return now - last_change_ >= std::max(kLeastQuiet, last_change_ - began_);
  }
  // Nothing new for as long as there was something new, and room above the peak: `room` is what the cap lets the job have. A
  // peak that is past counts for one such time.
  bool MayEnd(uint64_t now, PageCount room) {
    if (!IsQuiet(now)) return false;
    if (most_pages_ + Headroom(room) <= room) return true;
    most_pages_ = pages_;
    began_ = last_change_;
    last_change_ = now;
    return false;
  }
  // Below this nothing new is a reason to watch.
  bool IsNear(PageCount room) const { return pages_.count() * 5 > room.count() * 2; }

 private:
  static constexpr uint64_t kLeastQuiet = 256;  // allocations
  static constexpr size_t kLargest = 4095;      // pages; all larger ones are one size
  // For what happens between the first sign of something new and the time when enough has been watched to leave.
  static PageCount Headroom(PageCount room) { return PageCount(std::max<uint64_t>(room.count() / 32, 2)); }
  static size_t BinOf(const Extent& extent) {
    if (extent.kind != ExtentKind::kLarge) return extent.kind == ExtentKind::kSlab ? 0 : kLargest + 1;
    return std::min<size_t>(extent.pages.count.count(), kLargest);
  }

  std::array<uint32_t, kLargest + 2> alive_{}, most_{};
  PageCount pages_, most_pages_;
  uint64_t began_ = 0;
  uint64_t last_change_ = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_WATCH_NEED_H_
