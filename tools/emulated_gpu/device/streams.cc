#include "tools/emulated_gpu/device/streams.h"

#include <algorithm>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/handles.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/pools.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

auto& streams = *new HandleTable<Stream, 1 << 16>;
auto& events = *new HandleTable<Event, 1 << 22>;
std::atomic<uint64_t> last_stream_id{0};

// One per device; they live as long as their thread, what they enqueued goes on.
struct PerThread {
  Stream streams[kMostDevices];
  ~PerThread() {
    if (Ready() != CUDA_SUCCESS) return;  // a forked child: another thread may have held the lock
    for (Stream& stream : streams) LeaveCapture(stream);
    std::lock_guard<std::mutex> lock(Order().mutex);
    for (Stream& stream : streams) RetireLocked(stream);
  }
};

Stream& PerThreadStream() {
  thread_local PerThread mine;
  const int device = CurrentDevice();
  Stream& stream = mine.streams[device];
  if (stream.id == 0) stream.id = ++last_stream_id;
  stream.device = device;
  return stream;
}

const Costs& CostsOf() { return Settings().profile->costs; }
void ChargeEventCall() { ChargeHost(Micros(CostsOf().event_us), Busy::kCalls); }

// Queries in a row that said NOT_READY, of whatever: a program that polls a new event each time gets on too.
uint64_t refusals = 0;  // guarded by the lock of order.h
constexpr uint64_t kMostRefusals = 16;

// As late as possible is this often; a seed chooses up to twice that.
constexpr uint64_t kPatience = 2;

bool MayStillRun(const Past& past, Patience& patience) {
  if (!Settings().lazy_streams || Settings().timing || refusals >= kMostRefusals) return false;
  if (patience.tick != past.tick) {
    patience = {past.tick, SeedLocked() == 0 ? kPatience : DrawLocked(2 * kPatience + 1)};
  }
  if (patience.left == 0) return false;
  --patience.left;
  ++refusals;
  return true;
}

// A thread that asks so often for the same work, and does nothing else, waits for it. One that got no other answer so often,
// whatever it asked for, does so too.
constexpr uint64_t kPolls = 64, kPollsOfAnything = 512;
thread_local uint64_t early_in_a_row = 0;

bool BeforeItsTime(const Past& past, Patience& patience) {
  const Nanos now = HostNow();
  if (now >= past.done) return false;
  const Nanos one_call = Micros(CostsOf().event_us + 4 * CostsOf().call_us);  // and what comes with it
  const bool in_a_row = patience.early > 0 && now - patience.last_early <= one_call;
  patience.early = in_a_row ? patience.early + 1 : 1;
  patience.last_early = now;
  if (patience.early < kPolls && ++early_in_a_row < kPollsOfAnything) return true;
  HostWaits(past.done, Wait::kQuery);
  return false;
}

// Whether the work of `past` is complete; if so the host knows it from now on.
Status QueryLocked(const Past& past, Patience& patience) {
  if (IsCompleteLocked(past)) {
    HostReaches(past.done);  // another thread saw it, and this one may know that
    return CUDA_SUCCESS;
  }
  if (BeforeItsTime(past, patience)) return CUDA_ERROR_NOT_READY;
  if (MayStillRun(past, patience) || !TryRunLocked(past)) return CUDA_ERROR_NOT_READY;
  refusals = 0;
  early_in_a_row = 0;
  CompleteLocked(past);
  return CUDA_SUCCESS;
}

void SynchronizeLocked(OrderLock& lock, const Past& past, Wait wait) {
  RunLocked(lock, past);
  CompleteLocked(past);
  HostWaits(past.done, wait);
}

// What a wait for the stream waits for. The legacy stream comes after the work of all blocking streams.
Past WorkOfLocked(Stream& stream) { return IsLegacy(stream) ? StepLocked(stream) : stream.past; }

}  // namespace

Stream& LegacyStream(int device) {
  static auto* streams = [] {
    auto* made = new Stream[kMostDevices];
    for (int i = 0; i < kMostDevices; ++i) {
      made[i].device = i;
      made[i].legacy = true;
    }
    return made;
  }();
  return streams[device];
}

Stream* FindStream(CUstream handle, const char* call) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return &LegacyStream(CurrentDevice());
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
  stream->device = CurrentDevice();
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
  LeaveCapture(*stream);
  {
    std::lock_guard<std::mutex> lock(Order().mutex);
    RetireLocked(*stream);
    stream->past = {};
    stream->queue.Clear();  // slots are never destroyed: what they hold is given back here
  }
  streams.Kill(stream);
  return CUDA_SUCCESS;
}

Status QueryStream(CUstream handle) {
  Stream* stream = FindStream(handle, "stream query");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const Status refused = CheckAskedStream(*stream); refused != CUDA_SUCCESS) return refused;
  FinishOps();
  ChargeEventCall();
  std::lock_guard<std::mutex> lock(Order().mutex);
  Status status = QueryLocked(stream->past, stream->patience);
  if (!IsLegacy(*stream)) return status;
  for (Stream* other : Order().live) {
    if (other->device != stream->device || !IsBlocking(*other)) continue;
    if (status == CUDA_SUCCESS) status = QueryLocked(other->past, other->patience);
  }
  for (const Departed& other : Order().departed) {
    if (other.device != stream->device || !other.blocking) continue;
    Patience none{other.past.tick};
    if (status == CUDA_SUCCESS) status = QueryLocked(other.past, none);
  }
  return status;
}

Status SynchronizeStream(CUstream handle) {
  Stream* stream = FindStream(handle, "stream synchronize");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const Status refused = CheckAskedStream(*stream); refused != CUDA_SUCCESS) return refused;
  FinishOps();
  ChargeEventCall();
  {
    OrderLock lock(Order().mutex);
    SynchronizeLocked(lock, WorkOfLocked(*stream), Wait::kStream);
  }
  ReleaseUnusedPools();
  return CUDA_SUCCESS;
}

Status SynchronizeDevice(int device, Wait wait) {
  if (wait == Wait::kDevice) {
    if (const Status refused = CheckAskedDevice(device); refused != CUDA_SUCCESS) return refused;
  }
  FinishOps();
  ChargeEventCall();
  {
    OrderLock lock(Order().mutex);
    SynchronizeLocked(lock, EverythingLocked(device), wait);
  }
  ReleaseUnusedPools();
  return CUDA_SUCCESS;
}

void AlignLegacyStreams(int one, int other) {
  FinishOps();
  std::lock_guard<std::mutex> lock(Order().mutex);
  Stream& current = LegacyStream(CurrentDevice());
  for (int device : {one, other}) {
    if (device == current.device) continue;
    const Past past = StepLocked(LegacyStream(device));
    StepLocked(current, &past);
  }
  for (int device : {one, other}) {
    if (device != current.device) StepLocked(LegacyStream(device), &current.past);
  }
}

Status WaitForEvent(CUstream stream_handle, CUevent event_handle, bool external) {
  Stream* stream = FindStream(stream_handle, "stream wait");
  Event* event = FindEvent(event_handle, "stream wait");
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Status captured = CUDA_SUCCESS;
  if (CaptureWait(*stream, *event, event_handle, external, &captured)) return captured;
  FinishOps();
  ChargeEventCall();
  std::lock_guard<std::mutex> lock(Order().mutex);
  HostReaches(event->host_time);
  StepLocked(*stream, &event->past);
  return CUDA_SUCCESS;
}

Status LaunchHostFunction(CUstream handle, void (*function)(void*), void* argument) {
  Stream* stream = FindStream(handle, "host function");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CaptureDecides(*stream)) return CaptureWork(*stream, HostFunctionWork{function, argument});
  FinishOps();
  ChargeEventCall();
  std::lock_guard<std::mutex> lock(Order().mutex);
  QueueHostFunctionLocked(NoteWorkLocked(*stream, "host function", nullptr, 0), function, argument);
  return CUDA_SUCCESS;
}

Status CreateEvent(CUevent* handle, unsigned flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Event* event = events.Make();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = flags;
  event->device = CurrentDevice();
  *handle = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

Status DestroyEvent(CUevent handle) {
  Event* event = FindEvent(handle, "event destroy");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  {
    std::lock_guard<std::mutex> lock(Order().mutex);
    event->past = {};  // slots are never destroyed: what they hold is given back here
  }
  ForgetCapture(*event);
  events.Kill(event);
  return CUDA_SUCCESS;
}

void RecordOn(Stream& stream, Event& event) {
  std::lock_guard<std::mutex> lock(Order().mutex);
  StepLocked(stream);
  stream.past.done = std::max(stream.past.done, ReachesDevice());
  event.past = stream.past;
  event.host_time = HostNow();
  event.patience = {};
}

Status RecordEvent(CUevent event_handle, CUstream stream_handle, bool external) {
  Event* event = FindEvent(event_handle, "event record");
  Stream* stream = FindStream(stream_handle, "event record");
  if (event == nullptr || stream == nullptr || event->device != stream->device)
    return CUDA_ERROR_INVALID_HANDLE;
  Status captured = CUDA_SUCCESS;
  if (CaptureRecord(*stream, *event, event_handle, external, &captured)) return captured;
  event->recorded = true;
  FinishOps();
  ChargeEventCall();
  RecordOn(*stream, *event);
  return CUDA_SUCCESS;
}

Status QueryEvent(CUevent handle) {
  Event* event = FindEvent(handle, "event query");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const Status refused = CheckAskedEvent(*event); refused != CUDA_SUCCESS) return refused;
  ChargeEventCall();
  std::lock_guard<std::mutex> lock(Order().mutex);
  HostReaches(event->host_time);
  return QueryLocked(event->past, event->patience);
}

Status SynchronizeEvent(CUevent handle) {
  Event* event = FindEvent(handle, "event synchronize");
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const Status refused = CheckAskedEvent(*event); refused != CUDA_SUCCESS) return refused;
  ChargeEventCall();
  {
    OrderLock lock(Order().mutex);
    const Past past = event->past;
    SynchronizeLocked(lock, past, Wait::kEvent);
  }
  ReleaseUnusedPools();
  return CUDA_SUCCESS;
}

Status ElapsedMilliseconds(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  Event* start = FindEvent(start_handle, "event elapsed time");
  Event* end = FindEvent(end_handle, "event elapsed time");
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool timing = ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) == 0;
  if (!timing || !start->recorded || !end->recorded || start->device != end->device)
    return CUDA_ERROR_INVALID_HANDLE;
  if (start->in_capture || end->in_capture) return CUDA_ERROR_CAPTURED_EVENT;
  {
    std::lock_guard<std::mutex> lock(Order().mutex);
    for (Event* event : {start, end}) {
      if (QueryLocked(event->past, event->patience) != CUDA_SUCCESS) return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = static_cast<float>(static_cast<double>(end->past.done - start->past.done) * 1e-6);
  }
  return CUDA_SUCCESS;
}

size_t LiveStreams() { return streams.alive(); }
size_t LiveEvents() { return events.alive(); }

}  // namespace weir::emulated
