// A wait of a user's thread: for the GPU, for a turn, for pins of another thread. No Weir lock is held inside. The torch
// side is told before and after, so that it can release the GIL (R11): the thread that is waited for may need it. A trace gets
// cause and duration.
#ifndef WEIR_ALLOCATOR_WAIT_SCOPE_H_
#define WEIR_ALLOCATOR_WAIT_SCOPE_H_

#include <atomic>
#include <cstdint>

#include "trace/format.h"

namespace weir {

struct WaitHooks {
  void* (*begin)() = nullptr;
  void (*end)(void* token) = nullptr;
};

class WaitScope {
 public:
  explicit WaitScope(trace::WaitCause cause);
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

  // Once, before any wait; process-wide.
  static void SetHooks(WaitHooks hooks);
  // Waits so far in this process: the exit line's `stalls`.
  static uint64_t count();

 private:
  const trace::WaitCause cause_;
  const uint64_t began_ns_;  // 0: there was no trace
  void* token_ = nullptr;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_WAIT_SCOPE_H_
