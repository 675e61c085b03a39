// The one upward call of the allocator: when frames run out it asks for room. Implemented by the pager (offload/).
#ifndef WEIR_ALLOCATOR_ROOM_MAKER_H_
#define WEIR_ALLOCATOR_ROOM_MAKER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/extent.h"
#include "allocator/frame_pool.h"
#include "allocator/op_pins.h"

namespace weir {

// Slots of the RAM tier that an extent no longer needs. While `fill` is set, a copy out of them may still be running.
struct RetiredSlots {
  std::vector<RamSlot> slots;
  Fill fill;  // event null: nothing to wait for
};

class RoomMaker {
 public:
  virtual ~RoomMaker() = default;

  // Called with no lock held. Waits, evicts, and returns frames for `pages`, or RESOURCE_EXHAUSTED whose message says
  // what was tried and refused. `op`: the calling thread's pins; `stream`: where the new block will be used.
  virtual absl::StatusOr<FrameReservation> MakeRoom(PageCount pages, OpPins& op, Stream stream) = 0;

  // Called with the device's mutex held, when an extent with tier copies is freed: only remembers them.
  virtual void Retire(RetiredSlots slots) = 0;

  // Called with no lock held after new frames were taken: `held` bytes of VRAM count under the cap now.
  virtual void FramesHeld(Bytes held) = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_ROOM_MAKER_H_
