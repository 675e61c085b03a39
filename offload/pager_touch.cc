// Touch: an op is about to use blocks. All of them become resident, or none stays pinned.
#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/host_work.h"
#include "allocator/base/log.h"
#include "allocator/base/nvtx_range.h"
#include "allocator/base/safeguards.h"
#include "allocator/base/size_text.h"
#include "allocator/wait_scope.h"
#include "offload/pager.h"
#include "offload/waiting_pinner.h"
#include "trace/recorder.h"

namespace weir {

Pager::Pager(DeviceAllocator& device, PinnedStore& ram, const Policy& policy, StorageHooks hooks)
    : device_(device), driver_(device.driver()), ram_(ram), policy_(policy), hooks_(hooks) {}

absl::Status Pager::Touch(std::span<const TouchRequest> requests, OpPins& op, Stream stream) {
  {
    LockHolder lock(&device_.mutex());
    if (TryPinAllLocked(requests, op, stream)) return absl::OkStatus();
  }
  return TouchSlow(requests, op, stream);
}

bool Pager::TouchIfResident(std::span<const TouchRequest> requests, OpPins& op, Stream stream) {
  LockHolder lock(&device_.mutex());
  return TryPinAllLocked(requests, op, stream);
}

bool Pager::TryPinAllLocked(std::span<const TouchRequest> requests, OpPins& op, Stream stream) {
  device_.mutex().AssertHeld();
  for (const TouchRequest& request : requests) {
    const Block* block = device_.FindBlockLocked(request.addr);
    if (block == nullptr) continue;
    Residency state = block->extent->state;
    if (state != Residency::kResident && state != Residency::kFilling) return false;
    if (!device_.JoinFillLocked(block->extent, stream).ok()) return false;  // the slow way reports it
  }
  for (const TouchRequest& request : requests) {
    Block* block = device_.FindBlockLocked(request.addr);
    if (block != nullptr) NoteTouchLocked(block, request, op, stream);
  }
  return true;
}

void Pager::NoteTouchLocked(Block* block, const TouchRequest& request, OpPins& op, Stream stream) {
  device_.mutex().AssertHeld();
  Extent* extent = block->extent;
  if (extent->kind == ExtentKind::kSlab) return;  // always resident, never denied
  if (request.storage != nullptr && block->storage == nullptr && hooks_.retain != nullptr) {
    hooks_.retain(request.storage);
    block->storage = request.storage;
  }
  // Without its storage an evicted block could not be flagged, so a block leaves only once one is known.
  bool flaggable = block->storage != nullptr || hooks_.retain == nullptr;
  if (request.evidence && flaggable && !block->evidence) {
    block->evidence = true;
    if (--extent->without_evidence == 0) device_.NoteEvidenceLocked(extent);
  }
  if (!Without(Safeguard::kPinOfTouched)) device_.PinLocked(extent, stream, op);
}

absl::Status Pager::TouchSlow(std::span<const TouchRequest> requests, OpPins& op, Stream stream) {
  ScopedContext context(driver_, device_.device());
  TurnQueue::Turn turn(turns_);
  WaitingPinner waiting(device_, op);
  turn.Take();
  const size_t pins_before = op.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    absl::StatusOr<bool> pinned = false;
    while (pinned.ok() && !*pinned) pinned = FetchAndPin(requests, i, op, stream, turn);
    if (!pinned.ok() && !Without(Safeguard::kAllPinsOrNone)) op.ReleaseFrom(pins_before);
    LockHolder lock(&device_.mutex());
    waiting.RefreshLocked();
    if (!pinned.ok()) return pinned.status();
  }
  return absl::OkStatus();
}

// One step towards having the block of that request resident and pinned; false: look again.
absl::StatusOr<bool> Pager::FetchAndPin(std::span<const TouchRequest> requests, size_t index, OpPins& op,
                                        Stream stream, TurnQueue::Turn& turn) {
  const TouchRequest& request = requests[index];
  PageCount pages;
  {
    LockHolder lock(&device_.mutex());
    Block* block = device_.FindBlockLocked(request.addr);
    if (block == nullptr) return true;
    Extent* extent = block->extent;
    // Only the holder of the turn drains, and that is this thread.
    WEIR_CHECK(extent->state != Residency::kDraining);
    if (extent->HasFrames()) {
      absl::Status ordered = device_.JoinFillLocked(extent, stream);
      if (!ordered.ok()) return ordered;
      NoteTouchLocked(block, request, op, stream);
      return true;
    }
    pages = extent->pages.count;
  }
  absl::StatusOr<FrameReservation> frames = RoomFor(Room{pages, requests}, op, stream, turn);
  if (!frames.ok()) return frames.status();
  Extent* extent = nullptr;
  {
    // Whoever had the turn meanwhile (StepAside) may have fetched it.
    LockHolder lock(&device_.mutex());
    Block* block = device_.FindBlockLocked(request.addr);
    if (block == nullptr || block->extent->state != Residency::kInRam) return false;
    extent = block->extent;
  }
  absl::Status fetched = Fetch(extent, *std::move(frames), stream);
  if (!fetched.ok()) return fetched;
  return false;
}

absl::Status Pager::Fetch(Extent* extent, FrameReservation frames, Stream stream) {
  NvtxRange range(RangeKind::kFetch, extent->bytes());
  TellWork(HostWork::kMove);
  const PageRun pages = extent->pages;  // the storage is an argument of this thread's op: the extent stays
  absl::Status status = device_.space().MapFrames(pages, frames);
  if (!status.ok()) return status;
  uint64_t copies = 0;
  status = CopyRuns(pages, extent->slots, [&](PageRun part, void* memory) {
    ++copies;
    return driver_.CopyToDevice(device_.space().AddressOf(part), memory, part.count.bytes(), stream);
  });
  absl::StatusOr<Event> event = status.ok() ? device_.events().Record(stream) : absl::StatusOr<Event>(status);
  if (!event.ok()) {
    std::vector<FrameHandle> back;
    absl::Status undone = driver_.SynchronizeContext();
    if (undone.ok()) undone = device_.space().UnmapFrames(pages, &back);
    if (!undone.ok()) Log(LogLevel::kError, "a failed fetch could not be undone: ", undone.message());
    device_.frames().Return(back);
    return event.status();
  }
  trace::RecordMove(trace::Kind::kFetch, device_.device().value, device_.space().AddressOf(pages),
                    pages.count.bytes());
  LockHolder lock(&device_.mutex());
  device_.BeginFillLocked(extent, Fill{stream, *event});
  AllowLocked(extent);
  filling_.emplace_back(extent, *event);
  ++counters_.fetches;
  counters_.fetched_bytes += extent->bytes();
  counters_.copies += copies;
  return absl::OkStatus();
}

absl::Status Pager::PinForGood(DeviceAddr addr, OpPins& op, Stream stream) {
  TouchRequest request{addr};
  size_t pins_before = op.size();
  absl::Status status = Touch(std::span(&request, 1), op, stream);
  if (!status.ok()) return status;
  bool filling = false;
  {
    LockHolder lock(&device_.mutex());
    Block* block = device_.FindBlockLocked(addr);
    if (block != nullptr && block->extent->kind != ExtentKind::kSlab) block->extent->pinned_for_good = true;
    filling = block != nullptr && block->extent->state == Residency::kFilling;
  }
  if (filling && !Without(Safeguard::kCopiedInBeforeEscape)) status = WaitFor(stream);
  if (!op.InOp()) op.ReleaseFrom(pins_before);
  return status;
}

// Whoever has the address may use it on any stream, so the copy in, which `stream` waits for, has passed before.
absl::Status Pager::WaitFor(Stream stream) {
  ScopedContext context(driver_, device_.device());
  absl::StatusOr<Event> event = device_.events().Record(stream);
  if (!event.ok()) return event.status();
  absl::Status status;
  {
    WaitScope waiting(trace::WaitCause::kCopyIn);
    status = driver_.SynchronizeEvent(*event);
  }
  device_.events().Return(*event);
  return status;
}

bool Pager::IsResident(DeviceAddr addr) {
  LockHolder lock(&device_.mutex());
  const Block* block = device_.FindBlockLocked(addr);
  return block == nullptr || block->extent->HasFrames();
}

// Which storages throw when something asks for their address: those of extents that are leaving or have left.
void Pager::DenyLocked(Extent* extent) {
  if (hooks_.deny == nullptr || address_readers_ > 0) return;
  for (Block* block = extent->first; block != nullptr; block = block->after) {
    if (!block->IsFree() && block->storage != nullptr) {
      hooks_.deny(
          block->storage, block->addr.pointer(),
          "Weir moved this tensor out of VRAM, and something takes its address outside of any op that Weir "
          "can see. WEIR_DISABLE=1 runs the job without Weir.");
    }
  }
}

void Pager::AllowLocked(Extent* extent) {
  if (hooks_.allow == nullptr || address_readers_ > 0) return;
  for (Block* block = extent->first; block != nullptr; block = block->after) {
    if (!block->IsFree() && block->storage != nullptr) hooks_.allow(block->storage);
  }
}

void Pager::AddAddressReader(int change) {
  LockHolder lock(&device_.mutex());
  auto for_all_denied = [&](auto act) {
    device_.mutex().AssertHeld();
    for (Extent* extent : device_.ExtentsLocked()) {
      if (extent->state == Residency::kDraining || extent->state == Residency::kInRam) (this->*act)(extent);
    }
  };
  if (address_readers_ == 0 && change > 0) for_all_denied(&Pager::AllowLocked);
  address_readers_ += change;
  if (address_readers_ == 0 && change < 0) for_all_denied(&Pager::DenyLocked);
}

PagerCounters Pager::Counters() {
  LockHolder lock(&device_.mutex());
  return counters_;
}

void Pager::FramesHeld(Bytes held) {
  if (!device_.HasCap() || held.count() <= device_.cap().count() / 2) return;
  if (!warmed_up_.exchange(true)) ram_.WarmUp();
}

void Pager::Retire(RetiredSlots slots) { retired_.push_back(std::move(slots)); }

void Pager::Trim() {
  ScopedContext context(driver_, device_.device());
  SettleFills(/*wait=*/false);
  ram_.Trim();
}

}  // namespace weir
