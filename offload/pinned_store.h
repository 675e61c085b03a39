// The RAM tier: pinned host memory in slots of one page (2 MiB), under an exact budget.
//
// Slots are cut from slabs that are pinned once and kept until Trim(): pinning costs milliseconds per slab
// (research/cuda-facts.md 3) and takes global driver locks, so steady state pins nothing. Slots of one call are as
// contiguous as the free list allows, so that copies are few and long.
// Any thread; own synchronisation (LockRank::kTier); the device's context must be current.
#ifndef WEIR_OFFLOAD_PINNED_STORE_H_
#define WEIR_OFFLOAD_PINNED_STORE_H_

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/units.h"
#include "allocator/cuda/driver.h"
#include "allocator/extent.h"
#include "offload/ram_budget.h"

namespace weir {

// `copy` is called once for each part of `pages` whose slots lie side by side in RAM, in order, with the RAM address of
// its first byte; the first error ends it. `slots` holds one slot per page.
absl::Status CopyRuns(PageRun pages, std::span<const RamSlot> slots,
                      absl::FunctionRef<absl::Status(PageRun part, void* memory)> copy);

class PinnedStore {
 public:
  // `budget` outlives the store, and other stores may take from it too.
  PinnedStore(Driver& driver, RamBudget& budget) : driver_(driver), budget_(budget) {}
  // With a budget of its own, rounded down to whole pages.
  PinnedStore(Driver& driver, Bytes budget)
      : driver_(driver), own_(new RamBudget({.most = budget})), budget_(*own_) {}
  ~PinnedStore();  // unpins everything: no copy may be running

  // `pages` slots, or RESOURCE_EXHAUSTED naming the budget, or what the system refused.
  absl::StatusOr<std::vector<RamSlot>> Take(PageCount pages);
  // Nothing reads or writes the slots any more.
  void Return(const std::vector<RamSlot>& slots);
  // Pins the first slab, so that the first eviction does not have to. Idempotent; a refusal shows at the first Take.
  void WarmUp();
  // Unpins the slabs that hold no slot in use.
  void Trim();

  Bytes budget() const { return budget_.limit(); }
  Bytes room() const;    // that Take() could give at most, now
  Bytes pinned() const;  // bytes of slabs
  Bytes used() const;    // bytes of slots in use
  Bytes peak_used() const;

 private:
  absl::Status GrowLocked(PageCount at_least) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<void*> PinLocked(Bytes size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a new slab; less than `at_least` when the budget has no more.
  Bytes SlabSize(PageCount at_least);
  PageCount FreeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return PageCount(free_.size()); }

  Driver& driver_;
  const std::unique_ptr<RamBudget> own_;
  RamBudget& budget_;
  mutable RankedMutex mutex_{LockRank::kTier};
  std::map<char*, PageCount> slabs_ ABSL_GUARDED_BY(mutex_);
  std::vector<char*> free_
      ABSL_GUARDED_BY(mutex_);  // sorted, highest first: the back is taken, lowest addresses first
  Bytes pinned_ ABSL_GUARDED_BY(mutex_);
  Bytes used_ ABSL_GUARDED_BY(mutex_);
  Bytes peak_used_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_OFFLOAD_PINNED_STORE_H_
