// The blocks of one device: the only composition of address space, frames and heaps. Everything torch allocates on the
// device comes from here.
//
// Threads: any. One mutex (LockRank::kDeviceAllocator) guards blocks, extents, pins and stream uses; it is held for
// bookkeeping only, never while waiting for the GPU, copying or calling up. The pager shares it (mutex()).
// Sizes are bytes. A failing call changes nothing.
#ifndef WEIR_ALLOCATOR_DEVICE_ALLOCATOR_H_
#define WEIR_ALLOCATOR_DEVICE_ALLOCATOR_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "allocator/address_space.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/units.h"
#include "allocator/block_events.h"
#include "allocator/block_heap.h"
#include "allocator/cuda/driver.h"
#include "allocator/cuda/event_pool.h"
#include "allocator/device_snapshot.h"
#include "allocator/extent.h"
#include "allocator/extent_list.h"
#include "allocator/frame_pool.h"
#include "allocator/lane.h"
#include "allocator/leaving_order.h"
#include "allocator/op_pins.h"
#include "allocator/page_heap.h"
#include "allocator/room_maker.h"
#include "allocator/stats.h"
#include "allocator/watch_need.h"

namespace weir {

class DeviceAllocator {
 public:
  struct Config {
    DeviceIndex device;
    Bytes cap;        // Bytes::Max(): no cap
    Bytes addresses;  // how much to reserve
  };
  static absl::StatusOr<std::unique_ptr<DeviceAllocator>> Create(Driver& driver, const Config& config);
  // Blocks still alive keep their addresses reserved: only tests destroy an allocator.
  ~DeviceAllocator();

  // Before the first allocation that can need room. Null: what does not fit fails.
  void SetRoomMaker(RoomMaker* room_maker) { room_maker_ = room_maker; }
  // Drops a weak storage reference, with no lock held (R8).
  void SetStorageRelease(void (*release)(void* storage)) { release_storage_ = release; }

  // ---- blocks
  // The address of a new block of `requested` > 0 bytes, aligned to 512, for use on the lane's stream, out of its pool
  // (of one that has ended: out of the general heap). Its extent is pinned for `op` if an op is in flight.
  // RESOURCE_EXHAUSTED: does not fit; the message says why.
  absl::StatusOr<DeviceAddr> Allocate(Bytes requested, Lane lane, OpPins& op);
  // False: not the base of a live block.
  bool Free(DeviceAddr addr);
  // Bytes of the block that contains `addr` are not reused before `stream` has passed the block's free.
  void RecordStream(DeviceAddr addr, Stream stream);
  struct BlockInfo {
    DeviceAddr base;
    Bytes requested;
    uint64_t number;  // of its allocation
  };
  std::optional<BlockInfo> FindBlock(DeviceAddr addr);
  // Kernels of `peer` may use the blocks, now and from now on (AddressSpace::AddPeer). Needs no context.
  absl::Status AddPeer(DeviceIndex peer) { return space_->AddPeer(peer); }
  // For checks of what a job hands to the driver. kAlive: all of `size` bytes lie in one block that was not freed (not
  // even if the free waits for a recorded stream), or in an extent on its way out or back, which moves with its holes.
  // kEnd (for `size` zero, a mere pointer): in no such block, but one past the last byte of one. kDead: anything else.
  enum class Life { kAlive, kEnd, kDead };
  Life LifeOf(DeviceAddr addr, Bytes size);
  bool Contains(DeviceAddr addr) const { return space_->Contains(addr); }

  // ---- pools (pools.cc)
  // A new pool: free memory of its blocks serves its blocks alone. Only its frames may move elsewhere, as all idle ones
  // do when room is needed, and its blocks leave and come back like any other.
  PoolId MakePool();
  // Blocks of `pool` that are allocated from now on have an extent of their own.
  void KeepBlocksApart(PoolId pool);
  // Of the block that contains `addr`; the general heap where there is none.
  PoolId PoolOf(DeviceAddr addr);
  // The pool's memory is the general heap's, with the blocks that are alive, which stay valid. Never waits; no driver call.
  void EndPool(PoolId pool);

  // ---- bytes of other allocators that the job put into a pool (outside.cc): counted, never moved
  // Makes room for `bytes` that another allocator is about to take. RESOURCE_EXHAUSTED: does not fit.
  absl::Status TakeOutside(Bytes bytes, Stream stream, OpPins& op);
  void GiveOutside(Bytes bytes);
  // One of its blocks of `size` bytes was handed out, or has come back.
  void CountOutsideBlock(Bytes size, Bytes requested, bool live);

  // ---- ops (see op_pins.h)
  void BeginUnpin() ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex_) { mutex_.Lock(); }
  void UnpinLocked(Extent* extent, Stream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndUnpin(const OpPins& op) ABSL_UNLOCK_FUNCTION(mutex_);
  void PinLocked(Extent* extent, Stream stream, OpPins& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- making room without evicting, for the pager
  // Unmaps up to `pages` free pages that are still mapped; waits for their last users. Returns how many.
  absl::StatusOr<PageCount> Harvest(PageCount pages);
  // Blocks freed by the job that wait for a recorded stream: finishes those whose events have passed, or with `wait`
  // also the oldest. True if any was finished.
  bool FinishFrees(bool wait);
  // Waits on the host until everything in `uses` has been passed.
  absl::Status WaitUntilPassed(const StreamUses& uses);
  // Gives every cached page and pooled frame back to the driver.
  void EmptyCache();

  // ---- shared with the pager
  RankedMutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  Block* FindBlockLocked(DeviceAddr addr) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In order of creation.
  using Extents = ExtentList<&Extent::among_all>;
  const Extents& ExtentsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return extents_; }
  // `each(Extent*)` for those that may leave now, least recently touched first, until it returns false. Returns how many
  // were looked at.
  template <typename Each>
  uint64_t VisitLeavingLocked(Each each) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return leaving_.Visit(each);
  }
  // The last of its blocks that could not leave has evidence now, or is gone.
  void NoteEvidenceLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (extent->MayBeListed()) leaving_.Restore(extent);
  }
  // State moves of the pager; each keeps holes, counters and the address table in step.
  void BeginDrainLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelDrainLocked(Extent* extent, Residency back_to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The frames have been unmapped and are gone; if the last block was freed meanwhile the extent goes too.
  void EndDrainLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginFillLocked(Extent* extent, Fill fill) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<RamSlot> EndFillLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before `stream` uses the extent: it waits for the copy back that may still be queued on another (R9).
  absl::Status JoinFillLocked(const Extent* extent, Stream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StreamClock& clock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return clock_; }
  // Threads whose op in flight pins something here and that are not waiting in the pager.
  int ActivePinnersLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(pinners_.size()) - waiting_pinners_;
  }
  // A thread whose op in flight pins something here. `op` is that thread's: only its address may be looked at.
  struct Pinner {
    const OpPins* op;
    const char* name;  // of the outermost op; lives as long as the entry
  };
  const std::vector<Pinner>& PinnersLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return pinners_; }
  // Free pages that still have their frames; the empty extents that are kept whole are not among them.
  PageCount CachedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return pages_.mapped_free(); }
  // Freed by the job, and waiting for a recorded stream.
  Bytes WaitingLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Bytes(static_cast<uint64_t>(counters_.active_bytes[kAllPools].current -
                                       counters_.bytes[kAllPools].current));
  }
  // ---- whether the job's ops are watched (R6; watch_need.h)
  // They are, from now on, after a time when they were not.
  void BeginWatch();
  // No block has evidence any more.
  void ForgetEvidence();
  // False: they have to be watched still. True: everything is in VRAM, and (`if_quiet`) nothing new is expected; from now on a
  // sign of the opposite sets WatchWanted().
  bool TryEndWatch(bool if_quiet);
  // The cheap part of that question.
  bool IsQuiet() {
    LockHolder lock(&mutex_);
    return need_.IsQuiet(allocations_);
  }
  // TryEndWatch is taken back: no op has run since.
  void KeepWatch();
  // On some device. Any thread, no lock.
  static bool WatchWanted() { return watch_wanted_.load(std::memory_order_relaxed); }

  void AddWaitingPinnerLocked(int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until pins were released or the number of active pinners changed since `epoch`.
  uint64_t PinEpochLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return pin_epoch_; }
  void WaitForPinsLocked(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Driver& driver() { return driver_; }
  DeviceIndex device() const { return config_.device; }
  FramePool& frames() { return frames_; }
  AddressSpace& space() { return *space_; }
  EventPool& events() { return events_; }
  bool HasCap() const { return cap() != Bytes::Max(); }
  Bytes cap() const { return cap_.load(std::memory_order_relaxed); }
  // After frames() has taken it.
  void NoteCap(Bytes cap) { cap_.store(cap, std::memory_order_relaxed); }

  // ---- figures
  DeviceCounters Counters();
  void ResetPeaks();
  void ResetAccumulated();
  Bytes Floor();  // bytes of slabs
  Bytes PeakFloor();
  Bytes FreeWithoutEvicting();
  Bytes LargestFree();
  Bytes Cached();  // held, and in no extent with blocks
  // Driver calls made during the last half of the process's allocations (at most half, at least 15/32): zero in steady
  // state.
  uint64_t SteadyDriverCalls();
  // Everything that is there, at one instant.
  DeviceSnapshot Snapshot();
  // What happened since the last call; nothing while nobody watches (BlockEvents::Watch).
  std::vector<BlockEvent> TakeEvents();
  // Conservation: pages of extents, free runs and the frames add up; every extent is valid.
  bool IsValid();

 private:
  struct PendingFree {
    Block* block;
    std::vector<std::pair<Event, StreamUse>> waits;  // event null: of a destroyed stream
  };
  // What has to happen after the mutex is released.
  struct AfterFree {
    void* storage = nullptr;
  };

  DeviceAllocator(Driver& driver, const Config& config, std::unique_ptr<AddressSpace> space);

  void LeaveAboveCap() ABSL_LOCKS_EXCLUDED(mutex_);
  Block* TryAllocateLocked(ExtentKind kind, Bytes requested, const Lane& lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* TakeHoleLocked(ExtentKind kind, Bytes requested, const Lane& lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* TakeCachedLocked(ExtentKind kind, PageCount pages, Bytes requested, const Lane& lane)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<DeviceAddr> AllocateSlow(ExtentKind kind, Bytes requested, Lane lane, OpPins& op)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<PageHeap::MappedRun> MapFresh(PageCount pages, const Lane& lane, OpPins& op,
                                               PageCount* mapped_now) ABSL_LOCKS_EXCLUDED(mutex_);
  void MoveIdleFrames(PageCount pages) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<FrameReservation> NewFrames(PageCount pages, Stream stream, OpPins& op)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Block*> AllocateFresh(ExtentKind kind, PageCount pages, Bytes requested, const Lane& lane,
                                       OpPins& op) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<DeviceAddr> FinishAllocationLocked(Block* block, Stream stream, OpPins& op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* NewExtentLocked(ExtentKind kind, PageHeap::MappedRun run, Bytes requested)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The lane, or that of its stream in the general heap if the pool has ended.
  Lane LiveLocked(const Lane& lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return lane.pool.IsGeneral() || pools_.contains(lane.pool) ? lane : Lane(lane.stream);
  }
  ExtentKind KindLocked(Bytes requested, PoolId pool) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PutMappedLocked(PageHeap::MappedRun run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AfterFree FreeLocked(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DeferFreeLocked(Block* block, std::vector<StreamUse>* unrecordable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Block* FindUnfreedLocked(DeviceAddr addr) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsPendingLocked(const Block* block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitIsOverLocked(Event event, StreamUse use) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForDestroyedStreams(const std::vector<StreamUse>& uses) ABSL_LOCKS_EXCLUDED(mutex_);
  // One of its blocks is gone.
  void AfterBlockLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (extent->live_blocks == 0) {
      ExtentEmptiedLocked(extent);
    } else if (extent->without_evidence == 0) {
      NoteEvidenceLocked(extent);
    }
  }
  void ExtentEmptiedLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpPagesLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetireExtentLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushLastLargeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushSparesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TouchLocked(Extent* extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Extent* NewExtentObjectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void TellBlockLocked(EventKind kind, const Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    block_events_.Add(kind, block->addr, block->requested, block->extent->stream, block->number);
  }
  void TellRangeLocked(EventKind kind, PageRun run, Stream stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    block_events_.Add(kind, space_->AddressOf(run), run.count.bytes(), stream);
  }
  void CountExtentLocked(const Extent* extent, bool with_frames) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountAllocatedLocked(const Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountFreedLocked(const Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // by the job
  void CountReleasedLocked(const Block* block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // its bytes may be reused
  void CountOutsideSegmentLocked(Bytes bytes, bool taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllResidentLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkSteadyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  Driver& driver_;
  const Config config_;
  const Layout layout_;
  RoomMaker* room_maker_ = nullptr;
  void (*release_storage_)(void*) = nullptr;

  // Own synchronisation.
  std::atomic<Bytes> cap_;  // as it was asked for; frames_ keeps it in whole pages
  FramePool frames_;
  EventPool events_;
  const std::unique_ptr<AddressSpace> space_;

  RankedMutex mutex_{LockRank::kDeviceAllocator};
  absl::CondVar pins_changed_;
  BlockHeap heap_ ABSL_GUARDED_BY(mutex_);
  PageHeap pages_ ABSL_GUARDED_BY(mutex_);
  StreamClock clock_ ABSL_GUARDED_BY(mutex_);
  Extents extents_ ABSL_GUARDED_BY(mutex_);  // all with pages, spare ones included
  LeavingOrder leaving_ ABSL_GUARDED_BY(mutex_);
  WatchNeed need_ ABSL_GUARDED_BY(mutex_);
  bool watched_ ABSL_GUARDED_BY(mutex_) = true;
  static inline std::atomic<bool> watch_wanted_{false};
  std::vector<std::unique_ptr<Extent>> extent_objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<Extent*> unused_objects_ ABSL_GUARDED_BY(mutex_);
  // At most one empty slab and one empty medium extent are kept whole, so that a block that comes and goes at the edge
  // does not make and unmake extents.
  Extent* spare_[2] ABSL_GUARDED_BY(mutex_) = {nullptr, nullptr};
  // The large extent that was freed last, until anything else is asked for: the next block of its size gets it as it is.
  // More of them would keep neighbours from merging.
  Extent* last_large_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<PendingFree> pending_ ABSL_GUARDED_BY(mutex_);
  struct PoolTraits {
    bool blocks_apart = false;
  };
  std::map<PoolId, PoolTraits> pools_ ABSL_GUARDED_BY(mutex_);  // those that have not ended
  uint32_t pools_made_ ABSL_GUARDED_BY(mutex_) = 0;
  DeviceCounters counters_ ABSL_GUARDED_BY(mutex_);
  PageCount idle_moved_ ABSL_GUARDED_BY(mutex_);  // by MoveIdleFrames, so far
  uint64_t touches_ ABSL_GUARDED_BY(mutex_) = 0;
  BlockEvents block_events_ ABSL_GUARDED_BY(mutex_);
  uint64_t blocks_made_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t extents_made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Pinner> pinners_ ABSL_GUARDED_BY(mutex_);  // one per thread
  int waiting_pinners_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pin_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // Driver calls at certain numbers of allocations, each about 1/16 larger than the one before.
  struct CallMark {
    uint64_t allocations;
    uint64_t calls;
  };
  uint64_t allocations_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_mark_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<CallMark> call_marks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_DEVICE_ALLOCATOR_H_
