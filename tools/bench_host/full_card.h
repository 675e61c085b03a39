// A card full of tensors without a card, for programs that time the pager: the core on a driver that does nothing.
#ifndef WEIR_TOOLS_BENCH_HOST_FULL_CARD_H_
#define WEIR_TOOLS_BENCH_HOST_FULL_CARD_H_

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "absl/types/span.h"
#include "offload/pager.h"
#include "offload/pinned_store.h"

namespace weir::bench {

constexpr Bytes kAddresses = GiB(uint64_t{32} << 10);

// Says yes to everything and does nothing; events have passed at once.
class IdleDriver final : public Driver {
 public:
  absl::StatusOr<DeviceMemory> MemoryInfo(DeviceIndex) override {
    return DeviceMemory{kAddresses, kAddresses};
  }
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

// A card that holds `count` tensors, and one tensor more than that. Each move brings the oldest back and sends the next
// oldest away.
class FullCard {
 public:
  FullCard(uint64_t count, const Policy& policy)
      : device_(*DeviceAllocator::Create(driver_, {DeviceIndex{0}, kTensor * count, kAddresses})),
        ram_(driver_, GiB(64)),
        pager_(*device_, ram_, policy, StorageHooks{}) {
    device_->SetRoomMaker(&pager_);
    for (uint64_t i = 0; i <= count; ++i) {
      op_.Enter("make");
      tensors_.push_back(device_->Allocate(kTensor, kStream, op_).value());
      op_.Leave();
      Touch(i);
    }
  }

  void Move() {
    Touch(next_);
    next_ = (next_ + 1) % tensors_.size();
  }
  // Tensor 0 is the one that is out at first.
  void Touch(size_t tensor) {
    const TouchRequest request{tensors_[tensor], nullptr, /*evidence=*/true};
    op_.Enter("use");
    if (!pager_.Touch(std::span(&request, 1), op_, kStream).ok()) std::abort();
    op_.Leave();
  }
  uint64_t fetches() { return pager_.Counters().fetches; }

 private:
  static constexpr Bytes kTensor = MiB(16);
  static constexpr Stream kStream{1};

  IdleDriver driver_;
  std::unique_ptr<DeviceAllocator> device_;
  PinnedStore ram_;
  Pager pager_;
  OpPins op_;
  std::vector<DeviceAddr> tensors_;
  size_t next_ = 0;
};

}  // namespace weir::bench

#endif  // WEIR_TOOLS_BENCH_HOST_FULL_CARD_H_
