// The extents that may leave VRAM, least recently touched first, so that choosing looks at little more than what leaves.
// Not synchronised: guarded by the device's mutex.
//
// Contains every extent for which MayLeave() holds, and some for which it does not (yet): those are passed over, and those that
// only a touch, a free or evidence can change are dropped on the way (Restore brings them back). A touch takes constant time.
// What comes back without a touch, in the middle of the order, is kept in a tree beside the list.
#ifndef WEIR_ALLOCATOR_LEAVING_ORDER_H_
#define WEIR_ALLOCATOR_LEAVING_ORDER_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "allocator/extent.h"
#include "allocator/extent_list.h"

namespace weir {

class LeavingOrder {
 public:
  // Its last touch is `tick`, the newest of all.
  void Touch(Extent* extent, uint64_t tick) {
    if (extent->in_leaving_order == InLeavingOrder::kByTouch) {
      touched_.MoveToBack(extent);
    } else {
      Remove(extent);
      touched_.PushBack(extent);
      extent->in_leaving_order = InLeavingOrder::kByTouch;
    }
    extent->last_touch = tick;
  }
  // It may leave now, and was not touched just now. Nothing to do if it is there.
  void Restore(Extent* extent) {
    if (extent->in_leaving_order != InLeavingOrder::kNo) return;
    restored_.emplace(extent->last_touch, extent);
    extent->in_leaving_order = InLeavingOrder::kRestored;
  }
  // Nothing to do if it is not there.
  void Remove(Extent* extent) {
    if (extent->in_leaving_order == InLeavingOrder::kByTouch) touched_.Remove(extent);
    if (extent->in_leaving_order == InLeavingOrder::kRestored) restored_.erase(extent->last_touch);
    extent->in_leaving_order = InLeavingOrder::kNo;
  }

  // `each(Extent*)` for those that may leave, in order, until it returns false. Changes nothing of what it is given.
  // Returns how many were looked at.
  template <typename Each>
  uint64_t Visit(Each each) {
    uint64_t looked_at = 0;
    auto touched = touched_.begin();
    auto restored = restored_.begin();
    for (;;) {
      Extent* const by_touch = *touched;
      Extent* const by_tree = restored == restored_.end() ? nullptr : restored->second;
      if (by_touch == nullptr && by_tree == nullptr) return looked_at;
      ++looked_at;
      const bool from_list =
          by_tree == nullptr || (by_touch != nullptr && by_touch->last_touch < by_tree->last_touch);
      Extent* const extent = from_list ? by_touch : by_tree;
      if (extent->MayLeave()) {
        if (!each(extent)) return looked_at;
      } else if (extent->pins == 0) {
        if (from_list) {
          ++touched;
          Remove(extent);
        } else {
          restored = restored_.erase(restored);
          extent->in_leaving_order = InLeavingOrder::kNo;
        }
        continue;
      }
      if (from_list) {
        ++touched;
      } else {
        ++restored;
      }
    }
  }

 private:
  ExtentList<&Extent::by_touch> touched_;
  absl::btree_map<uint64_t, Extent*> restored_;  // by last_touch, which no two extents share
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_LEAVING_ORDER_H_
