// Streams, events and host functions. Any thread.
//
// Copies, memsets and host functions run as work_queue.h says, and count as complete when a synchronisation or query has
// said so. A query says NOT_READY before the virtual time at which the work is done, and may say so some times more: a
// kernel could still be at it.
// Handles that are dead or were never made are reported.
#ifndef WEIR_EMULATED_GPU_DEVICE_STREAMS_H_
#define WEIR_EMULATED_GPU_DEVICE_STREAMS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tools/emulated_gpu/device/capture_branch.h"
#include "tools/emulated_gpu/device/clocks.h"
#include "tools/emulated_gpu/device/launch_queue.h"
#include "tools/emulated_gpu/device/status.h"
#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;  // as on data-centre parts

// How often a query of one past has said NOT_READY. Guarded by the lock of order.h.
struct Patience {
  Tick tick = 0;  // of the past that is asked for
  uint64_t left = 0;
  uint64_t early = 0;    // queries in a row before its time
  Nanos last_early = 0;  // when the last of them ended
};

struct Stream {
  std::atomic<bool> alive{false};
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
  bool legacy = false;
  uint64_t id = 0;  // 0: a legacy stream
  // guarded by the lock of order.h:
  Past past;  // of its newest work
  Patience patience;
  Nanos host_time = 0;  // of the newest call on it
  LaunchQueue queue;
  CaptureBranch branch;  // guarded by the lock of graphs.h
};

struct Event {
  std::atomic<bool> alive{false};
  unsigned flags = 0;
  int device = 0;
  std::atomic<bool> recorded{false};
  // guarded by the lock of order.h:
  Past past;  // of the last record: what it is done at is the time of the event
  Patience patience;
  Nanos host_time = 0;                  // of the last record's call
  std::atomic<bool> in_capture{false};  // what it recorded last is `captured`
  CaptureBranch captured;               // guarded by the lock of graphs.h
};

Stream& LegacyStream(int device);
inline bool IsLegacy(const Stream& stream) { return stream.legacy; }

// Null (legacy default), CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are always alive; they are those of the current device.
// Null result: reported, dead.
Stream* FindStream(CUstream handle, const char* call);
Event* FindEvent(CUevent handle, const char* call);

// New streams and events belong to the current device. An event is recorded on streams of its device alone.
Status CreateStream(CUstream* handle, unsigned flags, int priority);
Status DestroyStream(CUstream handle);  // its work goes on
Status QueryStream(CUstream handle);
Status SynchronizeStream(CUstream handle);
// `wait` is what the summary counts it as.
Status SynchronizeDevice(int device, Wait wait = Wait::kDevice);
// What the legacy streams of these devices and of the current one get from now on comes after what they all got before.
void AlignLegacyStreams(int one, int other);
// Later work of `stream` comes after what `event` recorded last.
// `external`: for a stream that captures, a node that waits when the graph runs.
Status WaitForEvent(CUstream stream, CUevent event, bool external = false);
Status LaunchHostFunction(CUstream stream, void (*function)(void*), void* argument);

Status CreateEvent(CUevent* handle, unsigned flags);
Status DestroyEvent(CUevent handle);
// `external`: for a stream that captures, a node that records when the graph runs.
Status RecordEvent(CUevent event, CUstream stream, bool external = false);
void RecordOn(Stream& stream, Event& event);
Status QueryEvent(CUevent handle);
Status SynchronizeEvent(CUevent handle);
// Of the virtual clock.
Status ElapsedMilliseconds(float* milliseconds, CUevent start, CUevent end);

// Handles that nobody destroyed yet.
size_t LiveStreams();
size_t LiveEvents();

}  // namespace weir::emulated

#endif
