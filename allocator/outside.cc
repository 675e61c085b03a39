// Bytes on the device that are not Weir's and that it answers for: they count under the cap and in the figures.
#include "allocator/device_allocator.h"

namespace weir {

absl::Status DeviceAllocator::TakeOutside(Bytes bytes, Stream stream, OpPins& op) {
  ScopedContext context(driver_, config_.device);
  bool taken = frames_.TryTakeOutside(bytes, FrameReservation());
  if (!taken) {
    {
      LockHolder lock(&mutex_);
      ++counters_.retries;
    }
    if (room_maker_ == nullptr) return absl::ResourceExhaustedError("no room, and nothing can be moved");
    absl::StatusOr<FrameReservation> room = room_maker_->MakeRoom(PageCount::ToHold(bytes), op, stream);
    if (!room.ok()) return room.status();
    taken = frames_.TryTakeOutside(bytes, *std::move(room));
    if (!taken) return absl::ResourceExhaustedError("the driver does not take back the frames that make way");
  }
  if (room_maker_ != nullptr) room_maker_->FramesHeld(frames_.counted().bytes());
  LockHolder lock(&mutex_);
  CountOutsideSegmentLocked(bytes, true);
  return absl::OkStatus();
}

void DeviceAllocator::GiveOutside(Bytes bytes) {
  frames_.GiveOutside(bytes);
  LockHolder lock(&mutex_);
  CountOutsideSegmentLocked(bytes, false);
}

}  // namespace weir
