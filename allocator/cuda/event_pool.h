// Reusable events. Creating one costs a driver call; steady state creates none.
// Any thread; own synchronisation. The device's context must be current.
#ifndef WEIR_ALLOCATOR_CUDA_EVENT_POOL_H_
#define WEIR_ALLOCATOR_CUDA_EVENT_POOL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/cuda/driver.h"

namespace weir {

class EventPool {
 public:
  explicit EventPool(Driver& driver) : driver_(driver) {}

  // An event recorded on `stream` now.
  absl::StatusOr<Event> Record(Stream stream);
  // The event may be reused; nobody waits on it any more.
  void Return(Event event);

 private:
  Driver& driver_;
  RankedMutex mutex_{LockRank::kEventPool};
  std::vector<Event> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_CUDA_EVENT_POOL_H_
