// While a thread queues for room or makes room itself, nobody needs to wait for its pins to end: they end only after.
// Tells the device so for as long as it lives. It lives within the thread's Turn: the holder of the turn must never find
// a thread that neither works nor queues, or it would give up instead of stepping aside or waiting.
#ifndef WEIR_OFFLOAD_WAITING_PINNER_H_
#define WEIR_OFFLOAD_WAITING_PINNER_H_

#include "allocator/base/safeguards.h"
#include "allocator/device_allocator.h"
#include "offload/pager.h"

namespace weir {

class Pager::WaitingPinner {
 public:
  WaitingPinner(DeviceAllocator& device, OpPins& op) : device_(device), op_(op) {
    LockHolder lock(&device_.mutex());
    RefreshLocked();
  }
  ~WaitingPinner() {
    LockHolder lock(&device_.mutex());
    if (counted_) device_.AddWaitingPinnerLocked(-1);
  }
  WaitingPinner(const WaitingPinner&) = delete;
  WaitingPinner& operator=(const WaitingPinner&) = delete;

  // The thread has taken its first pin on the device, or released its last.
  void RefreshLocked() {
    device_.mutex().AssertHeld();
    bool holds = op_.Holds(&device_);
    if (holds == counted_ || Without(Safeguard::kWaitingPinnersCounted)) return;
    device_.AddWaitingPinnerLocked(holds ? 1 : -1);
    counted_ = holds;
  }

 private:
  DeviceAllocator& device_;
  OpPins& op_;
  bool counted_ = false;
};

}  // namespace weir

#endif  // WEIR_OFFLOAD_WAITING_PINNER_H_
