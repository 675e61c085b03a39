// One thread at a time works at making room on a device; the others queue. A turn is not a lock: its holder waits for
// the GPU and for other threads' pins.
//
// Fairness and deadlock (R11): turns are numbered in order of arrival and given out in that order. A holder that can get
// no further, because all that could be moved is pinned by threads which queue here themselves, steps aside if a
// younger one queues; the youngest has nobody to step aside for and gives up, which ends its op and its pins, and the
// elder goes on.
#ifndef WEIR_OFFLOAD_TURN_QUEUE_H_
#define WEIR_OFFLOAD_TURN_QUEUE_H_

#include <cstdint>
#include <set>

#include "absl/synchronization/mutex.h"
#include "allocator/base/lock_ranks.h"

namespace weir {

class TurnQueue {
 public:
  class Turn {
   public:
    explicit Turn(TurnQueue& queue);  // arrives, and does not wait
    ~Turn();
    void Take();     // waits; once
    bool TryTake();  // instead: false if others are there
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Lets younger threads have their turn, and comes back when one of them has finished. False, at once, when no
    // younger one queues.
    bool StepAside();

   private:
    TurnQueue& queue_;
    uint64_t number_;
    bool taken_ = false;
  };

 private:
  void Wait(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsNext(uint64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !taken_ && *waiting_.begin() == number;
  }

  RankedMutex mutex_{LockRank::kPager};
  absl::CondVar changed_;
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<uint64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // those who stepped aside are not in it
};

}  // namespace weir

#endif  // WEIR_OFFLOAD_TURN_QUEUE_H_
