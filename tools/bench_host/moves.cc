#include "tools/bench_host/moves.h"

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "absl/types/span.h"
#include "offload/pager.h"
#include "offload/pinned_store.h"
#include "policies/registry.h"

namespace weir::bench {
namespace {

// Says yes to everything and does nothing; events have passed at once.
class IdleDriver final : public Driver {
 public:
  absl::StatusOr<DeviceMemory> MemoryInfo(DeviceIndex) override { return DeviceMemory{GiB(64), GiB(64)}; }
  absl::StatusOr<bool> SupportsVirtualMemory(DeviceIndex) override { return true; }
  absl::Status EnterContext(DeviceIndex) override { return {}; }
  void LeaveContext() override {}
  absl::Status SynchronizeContext() override { return {}; }
  absl::StatusOr<DeviceAddr> ReserveAddresses(Bytes) override { return DeviceAddr(uint64_t{1} << 40); }
  absl::StatusOr<FrameHandle> CreateFrame(DeviceIndex, Bytes) override { return FrameHandle{++made_}; }
  absl::Status ReleaseFrame(FrameHandle) override { return {}; }
  absl::Status Map(DeviceAddr, Bytes, FrameHandle) override { return {}; }
  absl::Status SetAccess(absl::Span<const DeviceIndex>, DeviceAddr, Bytes) override { return {}; }
  absl::Status Unmap(DeviceAddr, Bytes) override { return {}; }
  absl::StatusOr<void*> HostAlloc(Bytes size) override {
    host_ += size.count();
    return reinterpret_cast<void*>(host_ - size.count());  // nobody reads or writes there
  }
  absl::Status HostFree(void*) override { return {}; }
  absl::Status CopyToHost(void*, DeviceAddr, Bytes, Stream) override { return {}; }
  absl::Status CopyToDevice(DeviceAddr, const void*, Bytes, Stream) override { return {}; }
  absl::StatusOr<Event> CreateEvent() override { return Event{reinterpret_cast<void*>(++made_)}; }
  absl::Status DestroyEvent(Event) override { return {}; }
  absl::Status RecordEvent(Event, Stream) override { return {}; }
  absl::StatusOr<bool> QueryEvent(Event) override { return true; }
  absl::Status SynchronizeEvent(Event) override { return {}; }
  absl::Status WaitEvent(Stream, Event) override { return {}; }

 private:
  uint64_t made_ = 0;
  uintptr_t host_ = uintptr_t{1} << 44;
};

constexpr Bytes kTensor = MiB(16);
constexpr Stream kStream(1);

// A card that holds `count` tensors, and one tensor more than that. Each touch brings the oldest back and sends the next
// oldest away.
class FullCard {
 public:
  explicit FullCard(uint64_t count)
      : device_(*DeviceAllocator::Create(driver_, {DeviceIndex{0}, kTensor * count, GiB(64)})),
        ram_(driver_, GiB(64)),
        pager_(*device_, ram_, *policy_, StorageHooks{}) {
    device_->SetRoomMaker(&pager_);
    for (uint64_t i = 0; i <= count; ++i) {
      op_.Enter("make");
      tensors_.push_back(device_->Allocate(kTensor, kStream, op_).value());
      op_.Leave();
      Touch(tensors_.back());
    }
  }

  void Move() {
    Touch(tensors_[next_]);
    next_ = (next_ + 1) % tensors_.size();
  }
  uint64_t fetches() { return pager_.Counters().fetches; }

 private:
  void Touch(DeviceAddr tensor) {
    const TouchRequest request{tensor, nullptr, /*evidence=*/true};
    op_.Enter("use");
    if (!pager_.Touch(std::span(&request, 1), op_, kStream).ok()) std::abort();
    op_.Leave();
  }

  IdleDriver driver_;
  std::unique_ptr<DeviceAllocator> device_;
  std::unique_ptr<Policy> policy_ = MakePolicy("lru");
  PinnedStore ram_;
  Pager pager_;
  OpPins op_;
  std::vector<DeviceAddr> tensors_;
  size_t next_ = 0;
};

}  // namespace

Work PairsOfMoves(const char* name, uint64_t tensors) {
  constexpr int kMoves = 16;
  return {name, kMoves, [card = std::make_shared<FullCard>(tensors)] {
            const uint64_t before = card->fetches();
            const double time = Timed([&card] {
              for (int i = 0; i < kMoves; ++i) card->Move();
            });
            if (card->fetches() != before + kMoves) std::abort();  // each touch was a pair of moves
            return time;
          }};
}

}  // namespace weir::bench
