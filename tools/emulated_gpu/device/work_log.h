// The newest works of the device, so that a report can tell both sides. Used under the lock of order.cc.
#ifndef WEIR_EMULATED_GPU_DEVICE_WORK_LOG_H_
#define WEIR_EMULATED_GPU_DEVICE_WORK_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/emulated_gpu/device/stacks.h"

namespace weir::emulated {

struct LoggedWork {
  uint64_t number = 0;
  const char* what = "";  // kernel or copy
  const char* op = "";    // of torch, or ""
  uint64_t stream_id = 0;
  ShortStack stack;
};

class WorkLog {
 public:
  // `what` and `op` live as long as the process.
  uint64_t Add(const char* what, const char* op, uint64_t stream_id) {
    if (ring_.empty()) ring_.resize(kKept);
    LoggedWork& work = ring_[++last_ % kKept];
    work = {last_, what, op, stream_id, TakeStack()};
    return last_;
  }

  uint64_t newest() const { return last_; }

  // "add_kernel (op aten::add.Tensor) on stream 3"
  std::string Describe(uint64_t number) const {
    const LoggedWork& work = ring_[number % kKept];
    if (work.number != number) return "work that is no longer remembered";
    std::string text = Demangled(work.what);
    if (text.size() > kLongestName) text = text.substr(0, kLongestName) + "...";
    if (*work.op != '\0') text += std::string(" (op ") + work.op + ")";
    return text +
           (work.stream_id == 0 ? " on the legacy stream" : " on stream " + std::to_string(work.stream_id));
  }
  std::string DescribeStack(uint64_t number) const {
    const LoggedWork& work = ring_[number % kKept];
    return work.number == number ? NameFrames(work.stack) : "unknown";
  }

 private:
  static constexpr size_t kLongestName = 100;
  static constexpr size_t kKept = size_t{1} << 14;
  std::vector<LoggedWork> ring_;
  uint64_t last_ = 0;
};

}  // namespace weir::emulated

#endif
