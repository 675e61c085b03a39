// Streams, events and host functions. Any thread.
//
// Work runs when it is enqueued, except host functions, which a thread of ours runs in order, as the driver
// does. Queries, events and later work of the stream honour them. Handles that are dead or were never made
// are reported.
#ifndef WEIR_EMULATED_GPU_DEVICE_STREAMS_H_
#define WEIR_EMULATED_GPU_DEVICE_STREAMS_H_

#include <atomic>
#include <cstdint>

#include "tools/emulated_gpu/device/clocks.h"
#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;  // as on data-centre parts

struct Stream {
  std::atomic<bool> alive{false};
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;                     // 0: the legacy stream
  Past past;                           // of its newest work; guarded by the lock of order.h
  std::atomic<uint64_t> host_work{0};  // number of the last host function that work enqueued now comes after
};

struct Event {
  std::atomic<bool> alive{false};
  unsigned flags = 0;
  std::atomic<bool> recorded{false};
  std::atomic<int64_t> time_ns{0};     // CLOCK_MONOTONIC of the last record
  std::atomic<uint64_t> host_work{0};  // the record is complete when this host function has run
  Past past;                           // of the last record; guarded by the lock of order.h
};

Stream& LegacyStream();
inline bool IsLegacy(const Stream& stream) { return &stream == &LegacyStream(); }

// Null (legacy default), CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are always alive. Null result: reported,
// dead.
Stream* FindStream(CUstream handle, const char* call);
Event* FindEvent(CUevent handle, const char* call);

Status CreateStream(CUstream* handle, unsigned flags, int priority);
Status DestroyStream(CUstream handle);
Status QueryStream(CUstream handle);  // NOT_READY while a host function is pending
Status SynchronizeStream(CUstream handle);
Status SynchronizeDevice();
// Later work of `stream` comes after what `event` recorded.
Status WaitForEvent(CUstream stream, CUevent event);
Status LaunchHostFunction(CUstream stream, void (*function)(void*), void* argument);

Status CreateEvent(CUevent* handle, unsigned flags);
Status DestroyEvent(CUevent handle);
Status RecordEvent(CUevent event, CUstream stream);
Status QueryEvent(CUevent handle);
Status SynchronizeEvent(CUevent handle);
Status ElapsedMilliseconds(float* milliseconds, CUevent start, CUevent end);

// Before work of `stream` that runs now: waits for the host functions it comes after.
void WaitForHostWork(const Stream& stream);

}  // namespace weir::emulated

#endif
