// Every mutex of Weir has a rank, listed here in acquisition order: a thread that holds one takes only those
// below it in the list. Debug builds abort on an inversion (and on taking the same rank twice); clang checks
// the annotations. No lock is held while waiting for the GPU, doing I/O, calling torch or calling up a layer.
#ifndef WEIR_ALLOCATOR_BASE_LOCK_RANKS_H_
#define WEIR_ALLOCATOR_BASE_LOCK_RANKS_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// Debian's Abseil is not built for ThreadSanitizer, which therefore does not see what its mutex orders: it is
// told.
#ifdef WEIR_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#define WEIR_TSAN_ACQUIRED(mutex) __tsan_acquire(mutex)
#define WEIR_TSAN_RELEASED(mutex) __tsan_release(mutex)
#else
#define WEIR_TSAN_ACQUIRED(mutex) static_cast<void>(mutex)
#define WEIR_TSAN_RELEASED(mutex) static_cast<void>(mutex)
#endif

namespace weir {

enum class LockRank : int {
  kInstall = 10,          // pytorch_plugin: installing Weir, once
  kObserver = 20,         // pytorch_plugin: the op observer's list of threads
  kPager = 30,            // offload: residency of all extents of a device
  kTier = 40,             // offload: slots of a tier
  kRamBudget = 45,        // offload: host memory pinned by all tiers of the process
  kDeviceAllocator = 50,  // allocator: blocks and extents of a device
  kAddressSpace = 60,     // allocator: reserved and mapped ranges
  kFramePool = 70,        // allocator: frames under the cap
  kEventPool = 80,        // allocator/cuda: reusable events
  kStats = 90,            // counters that must be read together
  kTrace = 95,            // trace: the buffer of records
  kLog = 100,             // the log's file
};

namespace internal {
#ifdef NDEBUG
inline void WillLock(LockRank) {}
inline void DidUnlock(LockRank) {}
#else
// Abort if this thread holds a lock of this rank or of one below it in the list; remember it otherwise.
void WillLock(LockRank rank);
void DidUnlock(LockRank rank);
#endif
}  // namespace internal

// absl::Mutex with a rank. Waiting on a condition keeps the rank: no other lock may be held across it.
class ABSL_LOCKABLE RankedMutex {
 public:
  explicit RankedMutex(LockRank rank) : rank_(rank) {}
  RankedMutex(const RankedMutex&) = delete;
  RankedMutex& operator=(const RankedMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    internal::WillLock(rank_);
    mutex_.Lock();
    WEIR_TSAN_ACQUIRED(this);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    WEIR_TSAN_RELEASED(this);
    mutex_.Unlock();
    internal::DidUnlock(rank_);
  }
  // Sleeps until `condition` holds; the mutex is held on entry and on return.
  void Await(const absl::Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    mutex_.Await(condition);
  }
  void Wait(absl::CondVar* changed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    WEIR_TSAN_RELEASED(this);
    changed->Wait(&mutex_);
    WEIR_TSAN_ACQUIRED(this);
  }
  // The same, for at most `time`.
  void WaitWithTimeout(absl::CondVar* changed, absl::Duration time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    WEIR_TSAN_RELEASED(this);
    changed->WaitWithTimeout(&mutex_, time);
    WEIR_TSAN_ACQUIRED(this);
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

 private:
  const LockRank rank_;
  absl::Mutex mutex_;
};

// Holds a RankedMutex for a scope.
class ABSL_SCOPED_LOCKABLE LockHolder {
 public:
  explicit LockHolder(RankedMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~LockHolder() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;

 private:
  RankedMutex* const mutex_;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_LOCK_RANKS_H_
