// Physical memory of one device under a hard cap: frames (driver handles of one page, 2 MiB), made once and kept.
//
// The cap counts every frame that exists, in use or pooled, and the bytes that a pool's own allocator holds for the job
// (outside), so device bytes that Weir answers for never exceed it at any instant; a lower one holds once the frames above it
// are gone. A frame is taken only through a FrameReservation, a move-only object that gives back in its destructor what
// was not consumed. Any thread; own synchronisation; calls the driver with its own lock held only to make or release
// frames (host-side calls, no waiting for the GPU).
#ifndef WEIR_ALLOCATOR_FRAME_POOL_H_
#define WEIR_ALLOCATOR_FRAME_POOL_H_

#include <atomic>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/units.h"
#include "allocator/cuda/driver.h"

namespace weir {

class FramePool;

// Frames that belong to the holder until consumed by Take().
class FrameReservation {
 public:
  FrameReservation() = default;
  FrameReservation(FrameReservation&& other) noexcept;
  FrameReservation& operator=(FrameReservation&& other) noexcept;
  ~FrameReservation();

  PageCount size() const { return PageCount(frames_.size()); }
  // Moves one frame out; the caller now has to Return it to the pool some day.
  FrameHandle Take();
  // Undoes Take() for frames that could not be used after all.
  void PutBack(std::vector<FrameHandle> frames);

 private:
  friend class FramePool;
  FrameReservation(FramePool* pool, std::vector<FrameHandle> frames)
      : pool_(pool), frames_(std::move(frames)) {}
  void GiveBack();

  FramePool* pool_ = nullptr;
  std::vector<FrameHandle> frames_;
};

class FramePool {
 public:
  // `cap` is rounded down to whole pages; Bytes::Max() is no cap.
  FramePool(Driver& driver, DeviceIndex device, Bytes cap);

  // All `pages` or nothing: pooled frames first, then new ones below the cap. nullopt: make room first. A driver that
  // is out of memory below the cap lowers the ceiling to what is held (see ceiling()) until frames are released.
  std::optional<FrameReservation> TryReserve(PageCount pages);
  // Another allocator is about to take `bytes` on the device: they count until GiveOutside. `making_way` and pooled frames
  // are released to the driver as far as needed; the rest of `making_way` is pooled. False: make room first.
  bool TryTakeOutside(Bytes bytes, FrameReservation making_way);
  void GiveOutside(Bytes bytes);
  // How many frames TryReserve could still give.
  PageCount Available() const;
  void Return(const std::vector<FrameHandle>& frames);
  // Releases all pooled frames to the driver and forgets a lowered ceiling.
  void Trim();
  // Forgets a lowered ceiling: the driver is asked again. False if it is the cap already.
  bool RaiseCeiling();

  // ---- another cap. Rounded down to whole pages; Bytes::Max() is none.
  // From now on no frame is made above `cap`; cap() itself follows in CommitCap().
  void WantCap(Bytes cap);
  // Releases pooled frames above what is wanted. True: cap() is the wanted one now; false: frames in use are above it, and each
  // that comes back is released.
  bool CommitCap();
  // What was wanted is forgotten: cap() stays.
  void KeepCap();
  // A lower one is wanted and does not hold yet. One relaxed load.
  bool IsLowering() const { return lowering_.load(std::memory_order_relaxed); }

  PageCount held() const;       // frames that exist
  PageCount counted() const;    // under the cap: held, and pages that would hold what is outside
  PageCount peak_held() const;  // most that was ever counted since ResetPeak()
  void ResetPeak();
  PageCount pooled() const;  // of these, not in use
  PageCount cap() const;
  PageCount wanted() const;  // the cap that is asked for; cap() itself, unless one is on its way
  // Most that may be held: cap, or less while the driver refuses or a lower cap is wanted, less what is outside.
  PageCount ceiling() const;

 private:
  PageCount CountedLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return held_ + PageCount::ToHold(outside_);
  }
  bool ReleaseLocked(FrameHandle frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageCount AvailableLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void ReleasePooledLocked(PageCount keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Driver& driver_;
  const DeviceIndex device_;
  mutable RankedMutex mutex_{LockRank::kFramePool};
  std::vector<FrameHandle> pooled_ ABSL_GUARDED_BY(mutex_);
  PageCount held_ ABSL_GUARDED_BY(mutex_);
  PageCount peak_held_ ABSL_GUARDED_BY(mutex_);
  PageCount cap_ ABSL_GUARDED_BY(mutex_);  // counted <= cap_, always
  std::atomic<bool> lowering_{false};
  PageCount wanted_ ABSL_GUARDED_BY(mutex_);   // the next cap
  PageCount ceiling_ ABSL_GUARDED_BY(mutex_);  // <= wanted_
  Bytes outside_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_FRAME_POOL_H_
