// The begin and the end of the times in which the job's ops are watched (R6).
#include "allocator/base/safeguards.h"
#include "allocator/device_allocator.h"

namespace weir {

void DeviceAllocator::BeginWatch() {
  LockHolder lock(&mutex_);
  watched_ = true;
  watch_wanted_.store(false, std::memory_order_relaxed);
  need_.Begin(allocations_);
}

void DeviceAllocator::ForgetEvidence() {
  LockHolder lock(&mutex_);
  if (Without(Safeguard::kEvidenceForgotten)) return;
  for (Extent* extent : extents_) {
    for (Block* block = extent->first; block != nullptr; block = block->after) block->evidence = false;
    extent->without_evidence = extent->live_blocks;
  }
}

bool DeviceAllocator::AllResidentLocked() const {
  for (const Extent* extent : extents_) {
    if (extent->state != Residency::kResident) return false;
  }
  return true;
}

bool DeviceAllocator::TryEndWatch(bool if_quiet) {
  LockHolder lock(&mutex_);
  if (if_quiet && !need_.MayEnd(allocations_, frames_.ceiling())) return false;
  if (!AllResidentLocked() && !Without(Safeguard::kEndOnlyWhenResident)) return false;
  watched_ = false;
  return true;
}

void DeviceAllocator::KeepWatch() {
  LockHolder lock(&mutex_);
  watched_ = true;
}

}  // namespace weir
