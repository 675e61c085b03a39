// How far a host thread gets ahead of a stream in virtual time: a call that finds kMost works of the stream not done waits for
// the oldest of them, as launches on hardware do. Guarded by the lock of order.h.
#ifndef WEIR_EMULATED_GPU_DEVICE_LAUNCH_QUEUE_H_
#define WEIR_EMULATED_GPU_DEVICE_LAUNCH_QUEUE_H_

#include <cstddef>
#include <vector>

#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

class LaunchQueue {
 public:
  static constexpr size_t kMost = 1024;  // unverified; the number that is commonly seen

  // Before a work is given its time.
  void MakeRoom() {
    if (done_.size() == kMost) HostWaits(done_[next_], Wait::kQueue);
  }
  void Add(Nanos done) {
    if (done_.size() < kMost) {
      done_.push_back(done);
      return;
    }
    done_[next_] = done;
    next_ = (next_ + 1) % kMost;
  }
  void Clear() { *this = LaunchQueue(); }

 private:
  std::vector<Nanos> done_;  // of the newest works, a ring once it is full
  size_t next_ = 0;          // the oldest
};

}  // namespace weir::emulated

#endif
