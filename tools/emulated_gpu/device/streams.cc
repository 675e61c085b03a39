#include "tools/emulated_gpu/device/streams.h"

#include <time.h>

#include <algorithm>

#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/host_functions.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

auto& streams = *new HandleTable<Stream, 1 << 16>;
auto& events = *new HandleTable<Event, 1 << 22>;
Stream legacy_stream;  // the legacy default stream
std::atomic<uint64_t> last_stream_id{0};

Stream& PerThreadStream() {
  thread_local Stream stream;
  return stream;
}

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void Raise(std::atomic<uint64_t>& value, uint64_t at_least) {
  uint64_t seen = value.load();
  while (seen < at_least && !value.compare_exchange_weak(seen, at_least)) {
  }
}

// Blocking streams and the legacy stream order each other; with work running at once only host functions show
// it.
uint64_t WorkBefore(const Stream& stream) {
  if (&stream == &legacy_stream) return LastHostFunction();
  const bool blocking = (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
  return std::max(stream.host_work.load(), blocking ? legacy_stream.host_work.load() : 0);
}

}  // namespace

Stream* FindStream(CUstream handle, const char* call) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return &legacy_stream;
  if (handle == CU_STREAM_PER_THREAD) return &PerThreadStream();
  Stream* stream = streams.Find(handle);
  if (stream == nullptr) Report("%s: stream %p is not alive", call, static_cast<void*>(handle));
  return stream;
}

Event* FindEvent(CUevent handle, const char* call) {
  Event* event = events.Find(handle);
  if (event == nullptr) Report("%s: event %p is not alive", call, static_cast<void*>(handle));
  return event;
}

Status CreateStream(CUstream* handle, unsigned flags, int priority) {
  if ((flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = streams.Make();
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  stream->flags = flags;
  stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);  // documented: clamped
  stream->id = ++last_stream_id;
  *handle = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

Status DestroyStream(CUstream handle) {
  Stream* stream = handle == nullptr ? nullptr : FindStream(handle, "stream destroy");
  if (stream == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  streams.Kill(stream);
  return CUDA_SUCCESS;
}

Status QueryStream(CUstream handle) {
  const Stream* stream = FindStream(handle, "stream query");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return HostFunctionDone(WorkBefore(*stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

Status SynchronizeStream(CUstream handle) {
  const Stream* stream = FindStream(handle, "stream synchronize");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  WaitForHostWork(*stream);
  return CUDA_SUCCESS;
}

Status SynchronizeDevice() {
  WaitForHostFunction(LastHostFunction());
  return CUDA_SUCCESS;
}

Status WaitForEvent(CUstream stream_handle, CUevent event_handle) {
  Stream* stream = FindStream(stream_handle, "stream wait");
  const Event* event = FindEvent(event_handle, "stream wait");
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Raise(stream->host_work, event->host_work.load());
  return CUDA_SUCCESS;
}

Status LaunchHostFunction(CUstream handle, void (*function)(void*), void* argument) {
  Stream* stream = FindStream(handle, "host function");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Raise(stream->host_work, EnqueueHostFunction(function, argument));
  return CUDA_SUCCESS;
}

Status CreateEvent(CUevent* handle, unsigned flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Event* event = events.Make();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = flags;
  *handle = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

Status DestroyEvent(CUevent handle) {
  Event* event = FindEvent(handle, "event destroy");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  events.Kill(event);
  return CUDA_SUCCESS;
}

Status RecordEvent(CUevent event_handle, CUstream stream_handle) {
  Event* event = FindEvent(event_handle, "event record");
  const Stream* stream = FindStream(stream_handle, "event record");
  if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->host_work = WorkBefore(*stream);
  event->time_ns = Now();
  event->recorded = true;
  return CUDA_SUCCESS;
}

Status QueryEvent(CUevent handle) {
  const Event* event = FindEvent(handle, "event query");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return HostFunctionDone(event->host_work) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

Status SynchronizeEvent(CUevent handle) {
  const Event* event = FindEvent(handle, "event synchronize");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  WaitForHostFunction(event->host_work);
  return CUDA_SUCCESS;
}

Status ElapsedMilliseconds(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const Event* start = FindEvent(start_handle, "event elapsed time");
  const Event* end = FindEvent(end_handle, "event elapsed time");
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool timing = ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) == 0;
  if (!timing || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (!HostFunctionDone(std::max(start->host_work.load(), end->host_work.load())))
    return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>(end->time_ns - start->time_ns) * 1e-6f;
  return CUDA_SUCCESS;
}

void WaitForHostWork(const Stream& stream) { WaitForHostFunction(WorkBefore(stream)); }

}  // namespace weir::emulated
