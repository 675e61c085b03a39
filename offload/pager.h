// Residency of one device: makes room by moving extents to the RAM tier, and brings them back when an op touches them.
//
// The simplest correct order of things. Copies run on the stream that needs the room or the bytes. Before an extent is
// unmapped the host waits for an event behind every stream that used it. There is no thread here and every eviction
// copies. One thread at a time makes room (TurnQueue); everybody else's fast path is one look under the device's mutex.
//
// Threads: any. Locks in order: TurnQueue (kPager), PinnedStore (kTier), the device (kDeviceAllocator); none is held
// while waiting, copying or mapping.
#ifndef WEIR_OFFLOAD_PAGER_H_
#define WEIR_OFFLOAD_PAGER_H_

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "allocator/device_allocator.h"
#include "allocator/room_maker.h"
#include "offload/pinned_store.h"
#include "offload/shortage.h"
#include "offload/turn_queue.h"
#include "policies/policy.h"

namespace weir {

// What the pager asks of the torch side about a StorageImpl; see WeirHost in pytorch_plugin/core_abi.h.
struct StorageHooks {
  void (*retain)(void* storage) = nullptr;
  void (*deny)(void* storage, const void* base, const char* text) = nullptr;
  void (*allow)(void* storage) = nullptr;
  const char* (*veto)() = nullptr;  // no lock is held
};

struct TouchRequest {
  DeviceAddr addr;
  void* storage = nullptr;  // see WeirTouch
  bool evidence = false;
};

struct PagerCounters {
  uint64_t evictions = 0;
  Bytes evicted_bytes;
  uint64_t fetches = 0;
  Bytes fetched_bytes;
  uint64_t copies = 0;  // driver copies, both directions
};

class Pager final : public RoomMaker {
 public:
  Pager(DeviceAllocator& device, PinnedStore& ram, const Policy& policy, StorageHooks hooks);

  // Makes all extents resident and pins them for `op`, or pins none. The bytes are there for work queued on `stream`
  // afterwards. Addresses outside the device are skipped. RESOURCE_EXHAUSTED: the message says what was needed.
  absl::Status Touch(std::span<const TouchRequest> requests, OpPins& op, Stream stream);
  // The same if nothing has to be fetched: true. Else nothing happens: false. Never waits.
  bool TouchIfResident(std::span<const TouchRequest> requests, OpPins& op, Stream stream);
  // Resident now and for good: a pointer to it has left torch's sight (R5).
  absl::Status PinForGood(DeviceAddr addr, OpPins& op, Stream stream);
  bool IsResident(DeviceAddr addr);

  absl::StatusOr<FrameReservation> MakeRoom(PageCount pages, OpPins& op, Stream stream) override;
  void Retire(RetiredSlots slots) override;
  void FramesHeld(Bytes held) override;

  // Another cap, at least one page: what is above it leaves first. RESOURCE_EXHAUSTED: not all of that can, and the cap stays; or,
  // with kOnceItCan, nothing more is taken until it has left.
  enum class Lowering { kNowOrNot, kOnceItCan };
  absl::Status SetCap(Bytes cap, OpPins& op, Lowering lowering = Lowering::kNowOrNot);

  // R4: while any thread works unseen nothing is evicted.
  void AddBlindThread(int change) { blind_threads_.fetch_add(change); }
  // A profiler reads the addresses of tensors, resident or not, and never uses them: while there is one, no storage is
  // denied.
  void AddAddressReader(int change);
  // R6: the job's ops are not seen from now on, so nothing leaves. False: something is not in VRAM, or on its way, or
  // (`if_quiet`) may soon have to leave (allocator/watch_need.h). Never waits.
  bool TryEndWatch(bool if_quiet);
  // Taken back: no op ran unseen.
  void KeepWatch();
  // They are seen again. All work that was queued unseen has passed before anything leaves. `hooks.veto` keeps everything in
  // VRAM as long as an op that began unseen may still run. What was seen before counts: a block that is the same still belongs to
  // the storage it belonged to.
  void BeginWatch();
  // It does not count: nothing leaves but what is seen from now on.
  void ForgetEvidence() { device_.ForgetEvidence(); }
  void Trim();  // pinned memory that holds nothing goes back to the system
  PagerCounters Counters();

 private:
  // Counts the calling thread among those whose pins nobody needs to wait for, as long as it is in here.
  class WaitingPinner;
  struct Victim {
    Extent* extent;
    Residency was;
    Event fill_event;  // of a victim that was filling
    Stream fill_stream;
  };
  // What room is wanted for.
  struct Room {
    PageCount pages;                         // more frames
    std::span<const TouchRequest> requests;  // all that the op is about to touch; empty: an allocation
  };

  bool TryPinAllLocked(std::span<const TouchRequest> requests, OpPins& op, Stream stream);
  void NoteTouchLocked(Block* block, const TouchRequest& request, OpPins& op, Stream stream);
  absl::Status TouchSlow(std::span<const TouchRequest> requests, OpPins& op, Stream stream);
  absl::StatusOr<FrameReservation> RoomFor(const Room& room, OpPins& op, Stream stream,
                                           TurnQueue::Turn& turn);
  // `index`: which of the requests.
  absl::StatusOr<bool> FetchAndPin(std::span<const TouchRequest> requests, size_t index, OpPins& op,
                                   Stream stream, TurnQueue::Turn& turn);
  absl::Status Fetch(Extent* extent, FrameReservation frames, Stream stream);
  absl::Status WaitFor(Stream stream);
  // Why nothing may leave at all.
  absl::StatusOr<Refusal> RefusalOfAll();

  // Evicts until about `pages` are free; returns how many were freed (zero: nothing could leave, see `refusal`).
  absl::StatusOr<PageCount> Evict(PageCount pages, Stream stream, Refusal& refusal);
  std::vector<Victim> PickVictims(PageCount pages, Bytes largest);  // `largest`: that may need new slots
  void TakeSlots(std::vector<Victim>& victims, Refusal& refusal);
  absl::Status CopyOut(const std::vector<Victim>& victims, Stream stream);
  absl::StatusOr<PageCount> UnmapVictims(std::vector<Victim>& victims);
  void CancelVictims(std::span<const Victim> victims);
  void DenyLocked(Extent* extent);
  void AllowLocked(Extent* extent);

  // Releases RAM slots whose copy back has passed; with `wait` waits for the oldest. True if any was released.
  bool SettleFills(bool wait);
  // The figures of a request that fails; the op holds its pins.
  Shortage Survey(const Room& room, OpPins& op, const Refusal& refusal);
  void SurveyLocked(const absl::flat_hash_set<const Extent*>& needed, Shortage& shortage,
                    std::vector<Candidate>& movable);

  DeviceAllocator& device_;
  Driver& driver_;
  PinnedStore& ram_;
  const Policy& policy_;
  const StorageHooks hooks_;
  TurnQueue turns_;
  std::atomic<int> blind_threads_{0};
  std::atomic<bool> watched_{true};
  std::atomic<bool> unseen_passed_{true};  // all work that was queued while nobody watched
  std::atomic<bool> warmed_up_{false};
  std::atomic<bool> said_first_eviction_{false};

  // Guarded by the device's mutex.
  int address_readers_ = 0;
  std::vector<std::pair<Extent*, Event>> filling_;
  std::vector<RetiredSlots> retired_;
  PagerCounters counters_;
};

}  // namespace weir

#endif  // WEIR_OFFLOAD_PAGER_H_
