// Making room: the ladder of free frames, free pages, evictions, other threads' pins; and the eviction itself.
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
absl::StatusOr<FrameReservation> Pager::MakeRoom(PageCount pages, OpPins& op, Stream stream) {
  // Before the pins are declared waiting, and given up after: see waiting_pinner.h
  TurnQueue::Turn turn(turns_);
  WaitingPinner waiting(device_, op);
  turn.Take();
  return RoomFor(Room{pages, {}}, op, stream, turn);
}

// The device's context is current. Each round takes the first rung that gives anything and starts again.
absl::StatusOr<FrameReservation> Pager::RoomFor(const Room& room, OpPins& op, Stream stream,
                                                TurnQueue::Turn& turn) {
  const PageCount pages = room.pages;
  Refusal refusal;
  bool asked_again = false;
  for (;;) {
    uint64_t pin_epoch;
    {
      LockHolder lock(&device_.mutex());
      pin_epoch = device_.PinEpochLocked();
    }
    std::optional<FrameReservation> frames = device_.frames().TryReserve(pages);
    if (frames.has_value()) return *std::move(frames);
    SettleFills(/*wait=*/false);
    if (pages <= device_.frames().ceiling()) {
      PageCount available = device_.frames().Available();
      PageCount missing = pages > available ? pages - available : PageCount(1);
      if (device_.FinishFrees(/*wait=*/false)) continue;
      absl::StatusOr<PageCount> freed = device_.Harvest(missing);
      if (freed.ok() && freed->count() == 0) freed = Evict(missing, stream, refusal);
      if (!freed.ok()) return freed.status();
      if (freed->count() > 0 || device_.FinishFrees(/*wait=*/true)) continue;
      WaitScope waiting(trace::WaitCause::kPins);
      LockHolder lock(&device_.mutex());
      if (device_.PinEpochLocked() != pin_epoch) continue;
      if (device_.ActivePinnersLocked() > 0 && !Without(Safeguard::kWaitForPins)) {
        device_.WaitForPinsLocked(pin_epoch);
        continue;
      }
    }
    // What the driver refused once may be there by now: an op does not fail before the driver refuses it again.
    if (!asked_again && device_.frames().RaiseCeiling()) {
      asked_again = true;
      continue;
    }
    if (!Without(Safeguard::kStepAside) && turn.StepAside()) continue;
    NvtxRange range(RangeKind::kOutOfMemory, pages.bytes());
    return absl::ResourceExhaustedError(ShortageText(Survey(room, op, refusal)));
  }
}

namespace {
absl::Status WaitForDevice(Driver& driver) {
  WaitScope waiting(trace::WaitCause::kStreams);
  return driver.SynchronizeContext();
}
}  // namespace

absl::StatusOr<Refusal> Pager::RefusalOfAll() {
  if (blind_threads_.load() > 0) {
    return Refusal{Refusal::By::kUnseenThread,
                   "a thread runs with record functions disabled, so its ops cannot be seen"};
  }
  if (const char* veto = hooks_.veto != nullptr ? hooks_.veto() : nullptr; veto != nullptr)
    return Refusal{Refusal::By::kTorchSide, veto};
  if (!watched_.load() && !Without(Safeguard::kNoMoveUnwatched))
    return Refusal{Refusal::By::kTorchSide, "the job's ops are not watched at present"};
  if (!unseen_passed_.load() && !Without(Safeguard::kUnseenWorkPassed)) {
    absl::Status passed = WaitForDevice(driver_);
    if (!passed.ok()) return passed;
    unseen_passed_.store(true);
  }
  return Refusal{};
}

absl::StatusOr<PageCount> Pager::Evict(PageCount pages, Stream stream, Refusal& refusal) {
  absl::StatusOr<Refusal> refused = RefusalOfAll();
  if (!refused.ok()) return refused.status();
  refusal = *std::move(refused);
  if (refusal.by != Refusal::By::kNobody) return PageCount();
  // One that is too large for the RAM that is left must not hide those that are not.
  std::vector<Victim> victims;
  do {
    victims = PickVictims(pages, ram_.room());
  } while (victims.empty() && SettleFills(/*wait=*/true));
  if (victims.empty()) victims = PickVictims(pages, Bytes::Max());  // to say what is missing
  if (victims.empty()) return PageCount();
  TakeSlots(victims, refusal);
  if (victims.empty()) return PageCount();
  TellWork(HostWork::kMove, victims.size());
  Bytes bytes;
  for (const Victim& victim : victims) bytes += victim.extent->bytes();
  NvtxRange range(RangeKind::kEvict, bytes);
  if (!said_first_eviction_.exchange(true)) {
    Log(LogLevel::kWarn, "device ", device_.device().value, ": use has reached the cap of ",
        FormatBytes(device_.cap()), "; tensors now move to RAM (up to ", FormatBytes(ram_.budget()),
        ", WEIR_RAM)");
  }
  absl::Status copied = CopyOut(victims, stream);
  if (!copied.ok()) {
    CancelVictims(victims);
    return copied;
  }
  return UnmapVictims(victims);
}

std::vector<Pager::Victim> Pager::PickVictims(PageCount pages, Bytes largest) {
  LockHolder lock(&device_.mutex());
  std::vector<Extent*> extents;
  std::vector<Candidate> candidates;
  const bool all = policy_.offer() == Offer::kAll;
  PageCount offered;
  const uint64_t looked_at = device_.VisitLeavingLocked([&](Extent* extent) {
    if (extent->state == Residency::kResident && extent->bytes() > largest) return true;
    extents.push_back(extent);
    candidates.push_back(Candidate{extent->number, extent->last_touch, extent->pages.count});
    offered += extent->pages.count;
    return all || offered < pages;
  });
  TellWork(HostWork::kCandidate, looked_at);
  std::vector<Victim> victims;
  for (size_t index : policy_.PickVictims(candidates, pages)) {
    Extent* extent = extents[index];
    victims.push_back(Victim{extent, extent->state, extent->fill.event, extent->fill.stream});
    DenyLocked(extent);
    device_.BeginDrainLocked(extent);
  }
  return victims;
}

// A filling extent already has slots; the copy out goes back to them. Victims that get none stay in VRAM.
void Pager::TakeSlots(std::vector<Victim>& victims, Refusal& refusal) {
  for (size_t i = 0; i < victims.size(); ++i) {
    if (victims[i].was == Residency::kFilling) continue;
    PageCount pages = victims[i].extent->pages.count;  // constant
    absl::StatusOr<std::vector<RamSlot>> slots = ram_.Take(pages);
    while (!slots.ok() && SettleFills(/*wait=*/true)) slots = ram_.Take(pages);
    if (slots.ok()) {
      LockHolder lock(&device_.mutex());
      victims[i].extent->slots = *std::move(slots);
      continue;
    }
    const bool within_budget = ram_.room() >= pages.bytes();
    refusal = {within_budget ? Refusal::By::kSystem : Refusal::By::kRamBudget,
               std::string(slots.status().message())};
    CancelVictims(std::span(victims).subspan(i, 1));
    victims.erase(victims.begin() + static_cast<ptrdiff_t>(i--));
  }
}

// D2H behind every use of the victims (R9), then one host wait for all of it.
absl::Status Pager::CopyOut(const std::vector<Victim>& victims, Stream stream) {
  StreamUses uses;
  std::vector<StreamUse> covered;
  bool used_anywhere = false;
  {
    LockHolder lock(&device_.mutex());
    for (const Victim& victim : victims) {
      uses.Add(victim.extent->uses);
      used_anywhere =
          used_anywhere || (victim.extent->used_anywhere && !Without(Safeguard::kUseOnAnyStreamPassed));
    }
    for (const StreamUse& use : uses.uses()) {
      if (use.stream != stream && !device_.clock().HasPassed(use))
        covered.push_back(device_.clock().Newest(use.stream));
    }
    covered.push_back(device_.clock().Mark(stream));
  }
  std::vector<Event> events;
  absl::Status status = used_anywhere ? WaitForDevice(driver_) : absl::OkStatus();
  auto wait_for = [&](Stream other) {
    absl::StatusOr<Event> event = device_.events().Record(other);
    if (absl::IsInvalidArgument(event.status()))
      return driver_.SynchronizeContext();  // the job destroyed the stream
    if (!event.ok()) return event.status();
    events.push_back(*event);
    return driver_.WaitEvent(stream, *event);
  };
  for (const StreamUse& use : covered) {
    if (status.ok() && use.stream != stream && !Without(Safeguard::kProducerBeforeCopyOut))
      status = wait_for(use.stream);
  }
  uint64_t copies = 0;
  for (const Victim& victim : victims) {
    if (!status.ok()) break;
    // Nobody else changes a draining extent's slots.
    status = CopyRuns(victim.extent->pages, victim.extent->slots, [&](PageRun part, void* memory) {
      ++copies;
      return driver_.CopyToHost(memory, device_.space().AddressOf(part), part.count.bytes(), stream);
    });
  }
  absl::StatusOr<Event> done = status.ok() ? device_.events().Record(stream) : absl::StatusOr<Event>(status);
  status = done.status();
  if (done.ok()) {
    WaitScope waiting(trace::WaitCause::kCopyOut);
    if (!Without(Safeguard::kCopyOutBeforeUnmap)) status = driver_.SynchronizeEvent(*done);
    events.push_back(*done);
  }
  if (!status.ok()) {
    // Copies may still run into slots that are about to be given up.
    absl::Status drained = driver_.SynchronizeContext();
    if (!drained.ok()) Log(LogLevel::kError, "after a failed eviction: ", drained.message());
  }
  for (Event event : events) device_.events().Return(event);
  LockHolder lock(&device_.mutex());
  counters_.copies += copies;
  if (!status.ok()) return status;
  for (const StreamUse& use : covered) device_.clock().Passed(use);
  for (const Victim& victim : victims) victim.extent->used_anywhere = false;
  return status;
}

absl::StatusOr<PageCount> Pager::UnmapVictims(std::vector<Victim>& victims) {
  PageCount freed;
  for (size_t i = 0; i < victims.size(); ++i) {
    const Victim& victim = victims[i];
    std::vector<FrameHandle> frames;
    absl::Status status = device_.space().UnmapFrames(victim.extent->pages, &frames);
    if (!status.ok()) {  // still mapped, the bytes are still there
      CancelVictims(std::span(victims).subspan(i));
      return status;
    }
    freed += victim.extent->pages.count;
    trace::RecordMove(trace::Kind::kEvict, device_.device().value,
                      device_.space().AddressOf(victim.extent->pages), victim.extent->bytes());
    {
      LockHolder lock(&device_.mutex());
      ++counters_.evictions;
      counters_.evicted_bytes += victim.extent->bytes();
      device_.EndDrainLocked(victim.extent);
    }
    if (victim.was == Residency::kFilling) device_.events().Return(victim.fill_event);
    device_.frames().Return(frames);
  }
  return freed;
}

// Victims stay in VRAM after all, in the state they were in.
void Pager::CancelVictims(std::span<const Victim> victims) {
  for (const Victim& victim : victims) {
    std::vector<RamSlot> slots;
    {
      LockHolder lock(&device_.mutex());
      AllowLocked(victim.extent);
      if (victim.was == Residency::kResident) slots = std::move(victim.extent->slots);
      device_.CancelDrainLocked(victim.extent, victim.was);
    }
    ram_.Return(slots);
  }
}

bool Pager::SettleFills(bool wait) {
  std::vector<RamSlot> released;
  Event waited_for;
  for (;;) {
    Event oldest;
    {
      LockHolder lock(&device_.mutex());
      auto passed = [&](Event event) {
        absl::StatusOr<bool> done = event == waited_for || Without(Safeguard::kSlotsUntilCopiedIn)
                                        ? absl::StatusOr<bool>(true)
                                        : driver_.QueryEvent(event);
        // An error is no proof, unless CUDA is gone.
        if (done.ok() ? !*done : !absl::IsUnavailable(done.status())) {
          if (oldest.handle == nullptr) oldest = event;
          return false;
        }
        device_.events().Return(event);
        return true;
      };
      std::erase_if(filling_, [&](const auto& entry) {
        device_.mutex().AssertHeld();
        auto [extent, event] = entry;
        if (extent->state != Residency::kFilling || extent->fill.event != event) {
          // Freed (its slots are in retired_) or drained (the eviction returns the event), unless it drains right now
          // and may come back: CancelDrain leaves `fill` as it was.
          return !(extent->state == Residency::kDraining && extent->fill.event == event);
        }
        if (!passed(event)) return false;
        std::vector<RamSlot> slots = device_.EndFillLocked(extent);
        released.insert(released.end(), slots.begin(), slots.end());
        return true;
      });
      std::erase_if(retired_, [&](RetiredSlots& retired) {
        if (retired.fill.event.handle != nullptr && !passed(retired.fill.event)) return false;
        released.insert(released.end(), retired.slots.begin(), retired.slots.end());
        return true;
      });
    }
    if (!released.empty() || !wait || oldest.handle == nullptr) break;
    WaitScope waiting(trace::WaitCause::kCopyIn);
    if (!driver_.SynchronizeEvent(oldest).ok()) break;
    waited_for = oldest;
  }
  ram_.Return(released);
  return !released.empty();
}

}  // namespace weir
