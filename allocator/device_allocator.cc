// Allocation: from a hole, from free mapped pages, from new frames, and last by making room.
#include "allocator/device_allocator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/log.h"
#include "allocator/base/safeguards.h"

namespace weir {

absl::StatusOr<std::unique_ptr<DeviceAllocator>> DeviceAllocator::Create(Driver& driver,
                                                                         const Config& config) {
  ScopedContext context(driver, config.device);
  auto space = AddressSpace::Create(driver, config.device, config.addresses);
  if (!space.ok()) return space.status();
  return std::unique_ptr<DeviceAllocator>(new DeviceAllocator(driver, config, *std::move(space)));
}

DeviceAllocator::DeviceAllocator(Driver& driver, const Config& config, std::unique_ptr<AddressSpace> space)
    : driver_(driver),
      config_(config),
      layout_(Layout::For(config.cap)),
      cap_(config.cap),
      frames_(driver, config.device, config.cap),
      events_(driver),
      space_(std::move(space)),
      heap_(layout_),
      pages_(space_->size()) {}

DeviceAllocator::~DeviceAllocator() = default;

absl::StatusOr<DeviceAddr> DeviceAllocator::Allocate(Bytes requested, Lane lane, OpPins& op) {
  if (frames_.IsLowering()) [[unlikely]]
    LeaveAboveCap();
  ExtentKind kind = layout_.KindOf(requested);
  {
    LockHolder lock(&mutex_);
    MarkSteadyLocked();
    if (!lane.pool.IsGeneral()) {
      lane = LiveLocked(lane);
      kind = KindLocked(requested, lane.pool);
    }
    Block* block = TryAllocateLocked(kind, requested, lane);
    if (block != nullptr) return FinishAllocationLocked(block, lane.stream, op);
  }
  absl::StatusOr<DeviceAddr> addr = AllocateSlow(kind, requested, lane, op);
  if (!addr.ok() && kind == ExtentKind::kMedium) {
    // There may be no room for a whole shared extent, and yet for this block alone.
    addr = AllocateSlow(ExtentKind::kLarge, requested, lane, op);
  }
  if (!addr.ok()) {
    LockHolder lock(&mutex_);
    ++counters_.out_of_memory;
  }
  return addr;
}

// What was freed since a lower cap was asked for goes, before any of it is handed out again.
void DeviceAllocator::LeaveAboveCap() {
  ScopedContext context(driver_, config_.device);
  const PageCount counted = frames_.counted(), wanted = frames_.wanted();
  absl::StatusOr<PageCount> left = counted > wanted ? Harvest(counted - wanted) : PageCount();
  if (!left.ok())
    Log(LogLevel::kWarn, "free frames above the cap could not be given back: ", left.status().message());
  frames_.CommitCap();
}

Block* DeviceAllocator::TryAllocateLocked(ExtentKind kind, Bytes requested, const Lane& lane) {
  if (kind == ExtentKind::kLarge)
    return TakeCachedLocked(kind, PageCount::ToHold(requested), requested, lane);
  Block* block = TakeHoleLocked(kind, requested, lane);
  if (block != nullptr) return block;
  return TakeCachedLocked(kind, layout_.SharedPages(kind), requested, lane);
}

Block* DeviceAllocator::TakeHoleLocked(ExtentKind kind, Bytes requested, const Lane& lane) {
  Block* block = heap_.Allocate(kind, requested, lane);
  Extent*& spare = spare_[kind == ExtentKind::kSlab ? 0 : 1];
  if (block != nullptr && spare == block->extent) spare = nullptr;
  return block;
}

// Free pages that still have their frames: no driver call.
Block* DeviceAllocator::TakeCachedLocked(ExtentKind kind, PageCount pages, Bytes requested,
                                         const Lane& lane) {
  if (Extent* last = last_large_;
      kind == ExtentKind::kLarge && last != nullptr && last->lane() == lane && last->pages.count == pages) {
    last_large_ = nullptr;
    last->first->requested = requested;
    last->live_blocks = last->without_evidence = 1;
    return last->first;
  }
  FlushLastLargeLocked();
  std::optional<PageHeap::MappedRun> run = pages_.TakeMapped(pages, lane);
  if (!run.has_value() && !lane.pool.IsGeneral()) {  // a pool grows; the other way only at its end
    run = pages_.TakeMapped(pages, Lane(lane.stream));
    if (run.has_value()) run->lane = lane;
  }
  if (!run.has_value()) return nullptr;
  Block* block = NewExtentLocked(kind, *std::move(run), requested);
  return block != nullptr ? block : TakeHoleLocked(kind, requested, lane);
}

Block* DeviceAllocator::NewExtentLocked(ExtentKind kind, PageHeap::MappedRun run, Bytes requested) {
  Extent* extent = NewExtentObjectLocked();
  extent->kind = kind;
  extent->pages = run.run;
  extent->base = space_->AddressOf(extent->pages);
  extent->stream = run.lane.stream;
  extent->pool = LiveLocked(run.lane).pool;
  extent->number = ++extents_made_;
  extent->state = Residency::kResident;
  extent->uses = std::move(run.uses);
  TouchLocked(extent);
  space_->SetOwner(extent->pages, extent);
  extents_.PushBack(extent);
  CountExtentLocked(extent, true);
  if (need_.CountNew(*extent, allocations_) && !watched_ && need_.IsNear(frames_.ceiling())) {
    watch_wanted_.store(true, std::memory_order_relaxed);
  }
  if (kind == ExtentKind::kLarge) return heap_.AdoptLarge(extent, requested);
  heap_.Adopt(extent);
  return nullptr;
}

absl::StatusOr<DeviceAddr> DeviceAllocator::AllocateSlow(ExtentKind kind, Bytes requested, Lane lane,
                                                         OpPins& op) {
  ScopedContext context(driver_, config_.device);
  PageCount pages = kind == ExtentKind::kLarge ? PageCount::ToHold(requested) : layout_.SharedPages(kind);
  absl::StatusOr<Block*> fresh = AllocateFresh(kind, pages, requested, lane, op);
  if (!fresh.ok()) return fresh.status();
  LockHolder lock(&mutex_);
  return FinishAllocationLocked(*fresh, lane.stream, op);
}

// New frames behind a fresh address range, or behind a free run that they make long enough; if what others free
// meanwhile does not do.
absl::StatusOr<Block*> DeviceAllocator::AllocateFresh(ExtentKind kind, PageCount pages, Bytes requested,
                                                      const Lane& lane, OpPins& op) {
  if (FinishFrees(/*wait=*/false)) {  // before new frames: what the job has freed must not pile up
    LockHolder lock(&mutex_);
    Block* block = TryAllocateLocked(kind, requested, LiveLocked(lane));
    if (block != nullptr) return block;
  }
  PageCount fresh;
  absl::StatusOr<PageHeap::MappedRun> run = MapFresh(pages, lane, op, &fresh);
  if (room_maker_ != nullptr) room_maker_->FramesHeld(frames_.counted().bytes());
  if (!run.ok()) return run.status();
  LockHolder lock(&mutex_);
  const DeviceAddr at = space_->AddressOf(run->run);
  TellRangeLocked(EventKind::kMapped, PageRun{run->run.end() - fresh.count(), fresh}, run->lane.stream);
  Block* block = NewExtentLocked(kind, *std::move(run), requested);
  if (block != nullptr) return block;
  Extent* extent = space_->Owner(at);
  block = TakeHoleLocked(kind, requested, LiveLocked(lane));
  if (extent->live_blocks == 0) ExtentEmptiedLocked(extent);  // a hole that fits better was freed meanwhile
  return block;
}

// Pages with frames that belong to nobody yet; the last `mapped_now` of them were mapped by this call.
absl::StatusOr<PageHeap::MappedRun> DeviceAllocator::MapFresh(PageCount pages, const Lane& lane, OpPins& op,
                                                              PageCount* mapped_now) {
  std::optional<PageHeap::Extension> extension;
  {
    LockHolder lock(&mutex_);
    extension = pages_.TakeExtendable(pages, lane);
  }
  absl::StatusOr<FrameReservation> frames =
      NewFrames(extension ? extension->missing.count : pages, lane.stream, op);
  std::optional<PageRun> fresh;
  {
    LockHolder lock(&mutex_);
    if (extension) {
      fresh = extension->missing;
    } else if (frames.ok()) {
      fresh = pages_.TakeUnmapped(pages);
    }
  }
  if (frames.ok() && !fresh)
    return absl::ResourceExhaustedError("the device's address reservation is used up");
  absl::Status mapped = frames.ok() ? space_->MapFrames(*fresh, *frames) : frames.status();
  if (!mapped.ok()) {
    LockHolder lock(&mutex_);
    if (fresh && !absl::IsDataLoss(mapped)) pages_.PutUnmapped(*fresh);
    if (extension) PutMappedLocked(std::move(extension->mapped));
    return mapped;
  }
  *mapped_now = fresh->count;
  if (!extension) return PageHeap::MappedRun{*fresh, lane, {}};
  extension->mapped.run.count += fresh->count;
  return std::move(extension->mapped);
}

// Before the job holds more frames: those under free pages serve as well, if no free run is long enough. Moving them costs
// driver calls, and a job whose steps repeat would pay at each step. So the more were moved, the more may lie idle: to let
// 1 % of the held frames more lie idle, 8 % were moved before, once.
void DeviceAllocator::MoveIdleFrames(PageCount pages) {
  constexpr PageCount kLeast{32};
  const PageCount held = frames_.held(), pooled = frames_.pooled();
  if (pooled >= pages) return;
  {
    LockHolder lock(&mutex_);
    const PageCount allowed = std::max(kLeast, PageCount(held.count() / 25 + idle_moved_.count() / 8));
    if (pages_.mapped_free() <= allowed) return;
  }
  absl::StatusOr<PageCount> moved = Harvest(pages - pooled);
  if (!moved.ok()) {
    Log(LogLevel::kWarn, "free frames could not be moved: ", moved.status().message());
    return;
  }
  LockHolder lock(&mutex_);
  idle_moved_ += *moved;
}

absl::StatusOr<FrameReservation> DeviceAllocator::NewFrames(PageCount pages, Stream stream, OpPins& op) {
  MoveIdleFrames(pages);
  std::optional<FrameReservation> frames = frames_.TryReserve(pages);
  if (frames.has_value()) return *std::move(frames);
  {
    LockHolder lock(&mutex_);
    ++counters_.retries;
  }
  if (room_maker_ == nullptr) return absl::ResourceExhaustedError("no room, and nothing can be moved");
  return room_maker_->MakeRoom(pages, op, stream);
}

absl::StatusOr<DeviceAddr> DeviceAllocator::FinishAllocationLocked(Block* block, Stream stream, OpPins& op) {
  Extent* extent = block->extent;
  absl::Status ordered = JoinFillLocked(extent, stream);
  if (!ordered.ok()) {
    heap_.Free(block);
    AfterBlockLocked(extent);
    return ordered;
  }
  block->number = ++blocks_made_;
  TellBlockLocked(EventKind::kAllocated, block);
  CountAllocatedLocked(block);
  if (op.InOp() && !Without(Safeguard::kPinOfAllocated)) PinLocked(extent, stream, op);
  WEIR_DCHECK_SLOW(extent->IsValid());
  return block->addr;
}

absl::Status DeviceAllocator::JoinFillLocked(const Extent* extent, Stream stream) {
  if (extent->state != Residency::kFilling || extent->fill.stream == stream) return absl::OkStatus();
  if (Without(Safeguard::kOtherStreamJoinsFill)) return absl::OkStatus();
  ScopedContext context(driver_, config_.device);
  return driver_.WaitEvent(stream, extent->fill.event);
}

void DeviceAllocator::PinLocked(Extent* extent, Stream stream, OpPins& op) {
  if (extent->kind == ExtentKind::kSlab) return;  // slabs never leave
  if (!op.Holds(this)) pinners_.push_back(Pinner{&op, op.outermost()});
  ++extent->pins;
  TouchLocked(extent);
  if (op.UsesAnyStream()) extent->used_anywhere = true;
  if (stream != extent->stream)
    extent->uses.Add(clock_.Mark(stream));  // known even if the block ends before the op
  op.Add(OpPins::Pin{this, extent, stream});
}

void DeviceAllocator::UnpinLocked(Extent* extent, Stream stream) {
  WEIR_DCHECK(extent->pins > 0);
  --extent->pins;
  if (!Without(Safeguard::kUnpinIsAUse)) extent->uses.Add(clock_.Mark(stream));
  if (extent->state == Residency::kFree && extent->pins == 0) unused_objects_.push_back(extent);
}

void DeviceAllocator::EndUnpin(const OpPins& op) {
  if (!op.Holds(this)) std::erase_if(pinners_, [&](const Pinner& pinner) { return pinner.op == &op; });
  ++pin_epoch_;
  if (!Without(Safeguard::kUnpinWakes)) pins_changed_.SignalAll();
  mutex_.Unlock();
}

void DeviceAllocator::AddWaitingPinnerLocked(int change) {
  waiting_pinners_ += change;
  ++pin_epoch_;
  pins_changed_.SignalAll();
}

void DeviceAllocator::WaitForPinsLocked(uint64_t epoch) {
  while (pin_epoch_ == epoch) mutex_.Wait(&pins_changed_);
}

void DeviceAllocator::TouchLocked(Extent* extent) {
  if (extent->MayBeListed()) {
    leaving_.Touch(extent, ++touches_);
  } else {
    extent->last_touch = ++touches_;
  }
}

Extent* DeviceAllocator::NewExtentObjectLocked() {
  if (unused_objects_.empty()) {
    extent_objects_.push_back(std::make_unique<Extent>());
    return extent_objects_.back().get();
  }
  Extent* extent = unused_objects_.back();
  unused_objects_.pop_back();
  *extent = Extent{};
  return extent;
}

void DeviceAllocator::MarkSteadyLocked() {
  if (++allocations_ < next_mark_) return;
  call_marks_.push_back(CallMark{allocations_, driver_.calls()});
  next_mark_ = allocations_ + allocations_ / 16 + 1;
}

}  // namespace weir
