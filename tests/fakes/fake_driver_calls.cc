// The methods of the Driver interface.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_driver.h"

namespace weir::fakes {
namespace {

// Granule by granule from one list of pieces to another of the same length.
void CopyGranules(const std::vector<Piece>& from, const std::vector<Piece>& to) {
  size_t source = 0;
  uint64_t read = 0;
  for (const Piece& piece : to) {
    for (uint64_t i = 0; i < piece.count; ++i, ++read) {
      while (read == from[source].count) {
        ++source;
        read = 0;
      }
      piece.region->Word(piece.first + i) = from[source].region->Word(from[source].first + read);
    }
  }
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace

thread_local int FakeDriver::contexts_entered_ = 0;

// ---- devices and contexts

absl::StatusOr<DeviceMemory> FakeDriver::MemoryInfo(DeviceIndex) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kMemoryInfo);
  if (!status.ok()) return status;
  return DeviceMemory{memory_.physical() - memory_.frames(), memory_.physical()};
}

absl::StatusOr<bool> FakeDriver::SupportsVirtualMemory(DeviceIndex) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kSupportsVirtualMemory);
  if (!status.ok()) return status;
  return true;
}

absl::Status FakeDriver::EnterContext(DeviceIndex) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kEnterContext);
  if (status.ok()) ++contexts_entered_;
  return status;
}

void FakeDriver::LeaveContext() {
  Lock lock(mutex_);
  CountCall();
  if (contexts_entered_ == 0) {
    (void)Reported("a context is left that was not entered");
    return;
  }
  --contexts_entered_;
}

absl::Status FakeDriver::SynchronizeContext() {
  RunWaitHook();
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kSynchronizeContext);
  if (status.ok()) timeline_.FinishAll();
  return status;
}

// ---- address ranges and frames

absl::StatusOr<DeviceAddr> FakeDriver::ReserveAddresses(Bytes size) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kReserveAddresses);
  if (!status.ok()) return status;
  return memory_.Reserve(size);
}

absl::StatusOr<FrameHandle> FakeDriver::CreateFrame(DeviceIndex, Bytes size) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kCreateFrame);
  if (!status.ok()) return status;
  FrameHandle frame = memory_.CreateFrame(size);
  if (frame.value == 0) return absl::ResourceExhaustedError("out of device memory");
  if (memory_.frames() > frame_limit_) (void)Reported("more frames than the limit");
  return frame;
}

absl::Status FakeDriver::ReleaseFrame(FrameHandle frame) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kReleaseFrame);
  return status.ok() ? Reported(memory_.ReleaseFrame(frame)) : status;
}

absl::Status FakeDriver::Map(DeviceAddr at, Bytes size, FrameHandle frame) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kMap);
  return status.ok() ? Reported(memory_.Map(at, size, frame)) : status;
}

absl::Status FakeDriver::SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kSetAccess);
  return status.ok() ? Reported(memory_.SetAccess(devices, at, size)) : status;
}

absl::Status FakeDriver::Unmap(DeviceAddr at, Bytes size) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kUnmap);
  if (!status.ok()) return status;
  for (const auto& region : memory_.MappedIn(at, size)) {
    if (timeline_.InFlight(*region)) {
      (void)Reported("unmap of memory that a stream may still use");
      break;
    }
  }
  return Reported(memory_.Unmap(at, size));
}

// ---- pinned host memory

absl::StatusOr<void*> FakeDriver::HostAlloc(Bytes size) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kHostAlloc);
  if (!status.ok()) return status;
  void* memory = memory_.HostAlloc(size);
  if (memory == nullptr) return absl::ResourceExhaustedError("out of pinned memory");
  return memory;
}

absl::Status FakeDriver::HostFree(void* memory) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kHostFree);
  if (!status.ok()) return status;
  std::shared_ptr<Region> region = memory_.HostRegion(memory);
  if (region != nullptr && timeline_.InFlight(*region)) {
    (void)Reported("free of pinned memory that a copy may still use");
  }
  return Reported(memory_.HostFree(memory));
}

// ---- copies and order

absl::Status FakeDriver::CopyLocked(std::vector<Piece> from, std::vector<Piece> to, Stream stream) {
  std::vector<Access> accesses = {Access{from, false}, Access{to, true}};
  // A race is reported; the copy is queued all the same.
  (void)Reported(timeline_.Enqueue(stream, accesses,
                                   [from = std::move(from), to = std::move(to)] { CopyGranules(from, to); }));
  return absl::OkStatus();
}

absl::Status FakeDriver::CopyToHost(void* to, DeviceAddr from, Bytes size, Stream stream) {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kCopyToHost);
  std::vector<Piece> source, target;
  if (status.ok()) status = Reported(memory_.Resolve(from, size, &source));
  if (status.ok()) status = Reported(memory_.ResolveHost(to, size, &target));
  return status.ok() ? CopyLocked(std::move(source), std::move(target), stream) : status;
}

absl::Status FakeDriver::CopyToDevice(DeviceAddr to, const void* from, Bytes size, Stream stream) {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kCopyToDevice);
  std::vector<Piece> source, target;
  if (status.ok()) status = Reported(memory_.ResolveHost(from, size, &source));
  if (status.ok()) status = Reported(memory_.Resolve(to, size, &target));
  return status.ok() ? CopyLocked(std::move(source), std::move(target), stream) : status;
}

absl::StatusOr<Event> FakeDriver::CreateEvent() {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kCreateEvent);
  if (!status.ok()) return status;
  events_.emplace(next_event_, nullptr);
  return Event{reinterpret_cast<void*>(static_cast<uintptr_t>(next_event_++))};
}

absl::Status FakeDriver::DestroyEvent(Event event) {
  Lock lock(mutex_);
  absl::Status status = BeginLocked(Call::kDestroyEvent);
  if (!status.ok()) return status;
  if (EventLocked(event) == nullptr) return absl::InvalidArgumentError("no such event");
  events_.erase(reinterpret_cast<uintptr_t>(event.handle));
  return absl::OkStatus();
}

absl::Status FakeDriver::RecordEvent(Event event, Stream stream) {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kRecordEvent);
  if (!status.ok()) return status;
  std::shared_ptr<Recording>* known = EventLocked(event);
  if (known == nullptr) return absl::InvalidArgumentError("no such event");
  if (destroyed_.contains(stream)) return absl::InvalidArgumentError("the stream was destroyed");
  *known = timeline_.Record(stream);
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeDriver::QueryEvent(Event event) {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kQueryEvent);
  if (!status.ok()) return status;
  std::shared_ptr<Recording>* known = EventLocked(event);
  if (known == nullptr) return absl::InvalidArgumentError("no such event");
  return *known == nullptr || timeline_.Query(**known);
}

absl::Status FakeDriver::SynchronizeEvent(Event event) {
  RunWaitHook();
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kSynchronizeEvent);
  if (!status.ok()) return status;
  std::shared_ptr<Recording>* known = EventLocked(event);
  if (known == nullptr) return absl::InvalidArgumentError("no such event");
  if (*known != nullptr) timeline_.Finish(**known);
  return absl::OkStatus();
}

absl::Status FakeDriver::WaitEvent(Stream stream, Event event) {
  Lock lock(mutex_);
  absl::Status status = BeginInContextLocked(Call::kWaitEvent);
  if (!status.ok()) return status;
  std::shared_ptr<Recording>* known = EventLocked(event);
  if (known == nullptr) return absl::InvalidArgumentError("no such event");
  if (*known != nullptr) timeline_.Wait(stream, *known);
  return absl::OkStatus();
}

}  // namespace weir::fakes
