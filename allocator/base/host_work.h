// Weir's own work on host threads, told to whoever adds it up: on the emulated GPU the time of the process is virtual, and what
// is not told takes none. A real driver does not ask, and telling costs a branch. Any thread, with or without locks.
#ifndef WEIR_ALLOCATOR_BASE_HOST_WORK_H_
#define WEIR_ALLOCATOR_BASE_HOST_WORK_H_

#include <atomic>
#include <cstdint>

namespace weir {

// The numbers of WeirEmulatedCharge in tools/emulated_gpu/device/clock_abi.h. What one of each takes is measured by
// tools/bench_host.
enum class HostWork : int {
  kOp = 0,         // an op observed, its touches not counted
  kMalloc = 1,     // one allocation
  kFree = 2,       // one free
  kMove = 3,       // one extent chosen to leave or to come back, and its states changed
  kEvent = 6,      // an event of torch's that holds nothing: a container, a backward node, a nested view
  kTouch = 7,      // one tensor of an op: found, pinned and released
  kCandidate = 8,  // one extent that a choice of victims looks at
};

// The calling thread did `count` of `work` (a HostWork).
using HostWorkListener = void (*)(int work, uint64_t count);
inline std::atomic<HostWorkListener> host_work_listener{nullptr};

inline void TellWork(HostWork work, uint64_t count = 1) {
  const HostWorkListener listener = host_work_listener.load(std::memory_order_relaxed);
  if (listener != nullptr) [[unlikely]]
    listener(static_cast<int>(work), count);
}

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_HOST_WORK_H_
