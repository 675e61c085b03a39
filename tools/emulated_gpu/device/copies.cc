#include "tools/emulated_gpu/device/copies.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/device/addresses.h"
#include "tools/emulated_gpu/device/capture.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/kernel_cost.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/memory.h"
#include "tools/emulated_gpu/device/op_work.h"
#include "tools/emulated_gpu/device/order.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/streams.h"
#include "tools/emulated_gpu/device/travel.h"
#include "tools/emulated_gpu/device/work_queue.h"

namespace weir::emulated {
namespace {

bool DirectionFits(Direction direction, bool to_device, bool from_device) {
  switch (direction) {
    case Direction::kHostToHost:
      return !to_device && !from_device;
    case Direction::kHostToDevice:
      return to_device;  // the source may be any address, as with unified addressing
    case Direction::kDeviceToHost:
      return from_device;
    default:
      return true;
  }
}

Status CheckEnd(const void* address, size_t bytes, const char* what, Touch touch) {
  const Status status = CheckTouch(reinterpret_cast<uintptr_t>(address), bytes, what, touch, kSomeDevice);
  if (status != CUDA_SUCCESS) SetSticky(status);
  return status;
}

Access Rectangle(const void* begin, size_t pitch, const Rows& rows, Use use) {
  return {reinterpret_cast<uintptr_t>(begin), rows.width, use, pitch, rows.height};
}

void Count(size_t bytes) {
  Counted().copies.fetch_add(1, std::memory_order_relaxed);
  Counted().copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// Whether the ends of a copy inside device memory are on two devices.
bool CrossesDevices(const void* to, const void* from) {
  return DeviceCount() > 1 &&
         Locate(reinterpret_cast<uintptr_t>(to)).device != Locate(reinterpret_cast<uintptr_t>(from)).device;
}

// Pageable memory up to this size is staged and the copy runs late; a larger copy runs at once, as the driver would
// stage it piece by piece.
constexpr size_t kMostStaged = size_t{1} << 20;

// What a copy from pageable memory waits for before its bytes are taken: the work before it.
Past WithoutItself(Past past) {
  --past.tick;
  return past;
}

using Transfers = std::vector<Transfer>;

void RunAll(const Transfers& transfers) {
  for (const Transfer& transfer : transfers) transfer.Run();
}

void RunNow(OrderLock& lock, const Past& past, const Transfers& transfers) {
  RunLocked(lock, WithoutItself(past));
  RunAll(transfers);
}

// Gives the newest work of `stream` the time of a copy, and this thread the time that its call takes before any wait.
void TakeTimeLocked(Stream& stream, Side to, Side from, bool between_devices, Call call, size_t bytes) {
  const Costs& costs = Settings().profile->costs;
  const double one_thread = costs.pageable_h2d_gbps;  // what a thread copies between host buffers
  if (call == Call::kGraph && to != Side::kDevice && from != Side::kDevice)
    return;  // the driver's thread copies
  if (to != Side::kDevice && from != Side::kDevice) {
    HostWaits(stream.past.done, Wait::kCopy);
    ChargeHost(TimeFor(static_cast<double>(bytes), one_thread), Busy::kCalls);
    return;
  }
  if (from == Side::kPageable && call == Call::kBlocking) HostWaits(stream.past.done, Wait::kCopy);
  const Route route = from != Side::kDevice ? Route::kIn
                      : to != Side::kDevice ? Route::kOut
                      : between_devices     ? Route::kPeer
                                            : Route::kInside;
  ProlongLocked(stream, CopyDemand(route, bytes, to == Side::kPageable || from == Side::kPageable));
  if (from == Side::kPageable && call != Call::kGraph)
    ChargeHost(TimeFor(static_cast<double>(bytes), one_thread), Busy::kCalls);  // staging
}

// Runs or queues what moves of an enqueued copy.
void Schedule(OrderLock& lock, const Past& past, Transfers transfers, Side to, Side from, Call call,
              size_t bytes) {
  if (call == Call::kGraph) {
    if (!transfers.empty()) QueueLocked(lock, past, [run = std::move(transfers)] { RunAll(run); });
    return;
  }
  const bool host_to_host = to != Side::kDevice && from != Side::kDevice;
  const bool waits = host_to_host || (to == Side::kPageable) ||
                     (to == Side::kPinned && call == Call::kBlocking) ||
                     (from == Side::kPinned && call == Call::kBlocking);
  if (waits) {
    RunNow(lock, past, transfers);
    CompleteLocked(past);
    HostWaits(past.done, Wait::kCopy);
    return;
  }
  if (from == Side::kPageable) {
    if (call == Call::kBlocking) {
      RunLocked(lock, WithoutItself(past));
      CompleteLocked(WithoutItself(past));
    }
    if (bytes > kMostStaged) {
      RunNow(lock, past, transfers);
      return;
    }
    for (Transfer& transfer : transfers) transfer.Stage();
  }
  if (!transfers.empty()) QueueLocked(lock, past, [run = std::move(transfers)] { RunAll(run); });
}

}  // namespace

Status Copy(void* to, const void* from, const Rows& rows, Direction direction, Call call, CUstream handle) {
  Stream* stream = FindStream(handle, "copy");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CopyOn(*stream, to, from, rows, direction, call);
}

Status CopyOn(Stream& stream, void* to, const void* from, const Rows& rows, Direction direction, Call call) {
  const size_t to_span = Span(rows.to_pitch, rows), from_span = Span(rows.from_pitch, rows);
  if (to_span == 0) return CUDA_SUCCESS;
  const bool to_device = InDeviceWindow(reinterpret_cast<uintptr_t>(to));
  const bool from_device = InDeviceWindow(reinterpret_cast<uintptr_t>(from));
  if (to == nullptr || from == nullptr || !DirectionFits(direction, to_device, from_device)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call != Call::kGraph && CaptureDecides(stream)) {
    return CaptureWork(stream, CopyWork{to, from, rows, direction});
  }
  if (call == Call::kBlocking) {
    if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  }
  Status status = CheckEnd(to, to_span, "a copy's destination", Touch::kWrite);
  if (status == CUDA_SUCCESS) status = CheckEnd(from, from_span, "a copy's source", Touch::kRead);
  if (status != CUDA_SUCCESS) return status;
  const size_t bytes = rows.width * rows.height;
  Count(bytes);
  Transfers transfers = TravelOfCopy(to, from, rows);
  const Side to_side = SideOf(to), from_side = SideOf(from);
  const bool between_devices = to_device && from_device && CrossesDevices(to, from);
  const Access accesses[] = {Rectangle(from, rows.from_pitch, rows, Use::kRead),
                             Rectangle(to, rows.to_pitch, rows, Use::kWrite)};
  FinishOps();
  if (call != Call::kGraph) ChargeHost(Micros(Settings().profile->costs.copy_submit_us), Busy::kCalls);
  OrderLock lock(Order().mutex);
  NoteWorkLocked(stream, call == Call::kGraph ? "copy of a graph" : "copy", accesses, 2);
  TakeTimeLocked(stream, to_side, from_side, between_devices, call, bytes);
  const Past past = stream.past;
  const bool watched = from_side == Side::kPinned && transfers.size() == 1 && Settings().lazy_streams &&
                       Settings().checks && !HostFunctionsQueuedLocked() &&
                       !IsWrittenLocked(reinterpret_cast<uintptr_t>(from), from_span);
  if (watched) transfers.front().Watch(Order().log.newest());
  Schedule(lock, past, std::move(transfers), to_side, from_side, call, bytes);
  return CUDA_SUCCESS;
}

Status CopyBetweenDevices(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  AlignLegacyStreams(to_device, from_device);
  const Status status = Copy(to, from, {bytes, bytes, bytes, bytes == 0 ? size_t{0} : size_t{1}},
                             Direction::kDeviceToDevice, Call::kBlocking, nullptr);
  AlignLegacyStreams(to_device, from_device);
  return status;
}

Status Fill(void* to, unsigned value, size_t element, const Rows& rows, Call call, CUstream handle) {
  Stream* stream = FindStream(handle, "memset");
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return FillOn(*stream, to, value, element, rows, call);
}

Status FillOn(Stream& stream, void* to, unsigned value, size_t element, const Rows& rows, Call call) {
  const size_t span = Span(rows.to_pitch, rows);
  if (span == 0) return CUDA_SUCCESS;
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call != Call::kGraph && CaptureDecides(stream)) {
    return CaptureWork(stream, FillWork{to, value, element, rows});
  }
  if (call == Call::kBlocking) {
    if (const Status refused = CheckUnsafeCall(); refused != CUDA_SUCCESS) return refused;
  }
  const Status status = CheckEnd(to, span, "a memset", Touch::kWrite);
  if (status != CUDA_SUCCESS) return status;
  Count(rows.width * rows.height);
  Transfers transfers = TravelOfFill(to, value, element, rows);
  const Access access = Rectangle(to, rows.to_pitch, rows, Use::kWrite);
  const Demand demand = FillDemand(rows.width * rows.height);
  FinishOps();
  if (call != Call::kGraph) ChargeHost(Micros(Settings().profile->costs.launch_us), Busy::kCalls);
  OrderLock lock(Order().mutex);
  if (call == Call::kGraph) {
    NoteWorkLocked(stream, "memset of a graph", &access, 1);
    ProlongLocked(stream, demand);
  } else {
    NoteWorkLocked(stream, "memset", &access, 1, &demand);
  }
  const Past past = stream.past;
  Schedule(lock, past, std::move(transfers), SideOf(to), Side::kDevice, call, rows.width * rows.height);
  return CUDA_SUCCESS;
}

}  // namespace weir::emulated
