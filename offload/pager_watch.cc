// The times in which the job's ops are watched, as the pager sees them: it moves nothing in between (R6).
#include "offload/pager.h"

namespace weir {

bool Pager::TryEndWatch(bool if_quiet) {
  if (if_quiet && !device_.IsQuiet()) return false;
  // Who makes room has a turn; so nothing is moved from before the look at what is in VRAM until nobody moves any more.
  TurnQueue::Turn turn(turns_);
  if (!turn.TryTake()) return false;
  ScopedContext context(driver_, device_.device());
  SettleFills(/*wait=*/false);
  if (!device_.TryEndWatch(if_quiet)) return false;
  watched_.store(false);
  return true;
}

void Pager::KeepWatch() {
  device_.KeepWatch();
  watched_.store(true);
}

void Pager::BeginWatch() {
  device_.BeginWatch();
  unseen_passed_.store(false);
  watched_.store(true);
}

}  // namespace weir
