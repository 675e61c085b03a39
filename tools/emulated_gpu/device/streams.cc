#include "tools/emulated_gpu/device/streams.h"

#include <time.h>

#include <algorithm>

#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/host_functions.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

auto& streams = *new HandleTable<Stream, 1 << 16>;
auto& events = *new HandleTable<Event, 1 << 22>;
std::atomic<uint64_t> last_stream_id{0};

// Lives as long as its thread; what it enqueued goes on.
struct PerThread {
  Stream stream;
  PerThread() { stream.id = ++last_stream_id; }
  ~PerThread() {
    std::lock_guard<std::mutex> lock(Order().mutex);
    RetireLocked(stream);
  }
};

Stream& PerThreadStream() {
  thread_local PerThread mine;
  return mine.stream;
}

int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

void RaiseTo(std::atomic<uint64_t>& value, uint64_t at_least) {
  uint64_t seen = value.load();
  while (seen < at_least && !value.compare_exchange_weak(seen, at_least)) {
  }
}

// Blocking streams and the legacy stream order each other; with work running at once only host functions show
// it.
uint64_t WorkBefore(const Stream& stream) {
  if (IsLegacy(stream)) return LastHostFunction();
  const bool blocking = (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
  return std::max(stream.host_work.load(), blocking ? LegacyStream().host_work.load() : 0);
}

// The host learned that the work of `stream` until now is complete.
void CompleteStream(Stream& stream) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  if (IsLegacy(stream)) StepLocked(stream);  // it comes after the work of all blocking streams
  CompleteLocked(stream.past);
}

void CompleteRecord(const Event& event) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  CompleteLocked(event.past);
}

}  // namespace

Stream& LegacyStream() {
  static auto* stream = new Stream;
  return *stream;
}

Stream* FindStream(CUstream handle, const char* call) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return &LegacyStream();
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
  {
    std::lock_guard<std::mutex> lock(Order().mutex);
    RetireLocked(*stream);
  }
  streams.Kill(stream);
  return CUDA_SUCCESS;
}

Status QueryStream(CUstream handle) {
  Stream* stream = FindStream(handle, "stream query");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!HostFunctionDone(WorkBefore(*stream))) return CUDA_ERROR_NOT_READY;
  CompleteStream(*stream);
  return CUDA_SUCCESS;
}

Status SynchronizeStream(CUstream handle) {
  Stream* stream = FindStream(handle, "stream synchronize");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  WaitForHostWork(*stream);
  CompleteStream(*stream);
  return CUDA_SUCCESS;
}

Status SynchronizeDevice() {
  WaitForHostFunction(LastHostFunction());
  std::lock_guard<std::mutex> lock(Order().mutex);
  CompleteAllLocked();
  return CUDA_SUCCESS;
}

Status WaitForEvent(CUstream stream_handle, CUevent event_handle) {
  Stream* stream = FindStream(stream_handle, "stream wait");
  const Event* event = FindEvent(event_handle, "stream wait");
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  RaiseTo(stream->host_work, event->host_work.load());
  std::lock_guard<std::mutex> lock(Order().mutex);
  StepLocked(*stream, &event->past);
  return CUDA_SUCCESS;
}

Status LaunchHostFunction(CUstream handle, void (*function)(void*), void* argument) {
  Stream* stream = FindStream(handle, "host function");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  RaiseTo(stream->host_work, EnqueueHostFunction(function, argument));
  NoteWork(*stream, "host function", nullptr, 0);
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
  Stream* stream = FindStream(stream_handle, "event record");
  if (event == nullptr || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->host_work = WorkBefore(*stream);
  event->time_ns = Now();
  event->recorded = true;
  std::lock_guard<std::mutex> lock(Order().mutex);
  event->past = StepLocked(*stream);
  return CUDA_SUCCESS;
}

Status QueryEvent(CUevent handle) {
  const Event* event = FindEvent(handle, "event query");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!HostFunctionDone(event->host_work)) return CUDA_ERROR_NOT_READY;
  CompleteRecord(*event);
  return CUDA_SUCCESS;
}

Status SynchronizeEvent(CUevent handle) {
  const Event* event = FindEvent(handle, "event synchronize");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  WaitForHostFunction(event->host_work);
  CompleteRecord(*event);
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
