// Another cap while the job runs: what is above it leaves first, and only then it holds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/size_text.h"
#include "offload/pager.h"
#include "offload/waiting_pinner.h"

namespace weir {

absl::Status Pager::SetCap(Bytes cap, OpPins& op, Lowering lowering) {
  // Before the pins are declared waiting, and given up after: see waiting_pinner.h
  TurnQueue::Turn turn(turns_);
  WaitingPinner waiting(device_, op);
  turn.Take();
  ScopedContext context(driver_, device_.device());
  FramePool& frames = device_.frames();
  const PageCount wanted(cap / kPageBytes);
  frames.WantCap(cap);
  while (!frames.CommitCap()) {
    // Frames that come free are pooled when the reservation ends, and released by the next round.
    const PageCount above = frames.counted() > wanted ? frames.counted() - wanted : PageCount(1);
    const absl::Status room =
        RoomFor(Room{std::max(std::min(above, frames.ceiling()), PageCount(1)), {}}, op, Stream(), turn)
            .status();
    if (room.ok()) continue;
    const bool stays = lowering == Lowering::kNowOrNot;
    if (stays) frames.KeepCap();
    const std::string text = absl::StrCat(
        "what device ", device_.device().value, " has in use does not fit under a cap of ", FormatBytes(cap),
        ", ", stays ? absl::StrCat("which stays ", FormatBytes(device_.cap())) : "which holds once it does",
        ": ", room.message());
    if (!stays) device_.NoteCap(cap);
    return absl::Status(room.code(), text);
  }
  device_.NoteCap(cap);
  return absl::OkStatus();
}

}  // namespace weir
