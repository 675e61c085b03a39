#include "allocator/leaving_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeavingOrderTest : public ::testing::Test {
 protected:
  // One that may leave, touched last.
  Extent* Add() {
    Extent* extent = &extents_.emplace_back();
    extent->live_blocks = 1;
    Touch(extent);
    return extent;
  }
  void Touch(Extent* extent) { order_.Touch(extent, ++clock_); }
  std::vector<Extent*> All() {
    std::vector<Extent*> all;
    looked_at_ = order_.Visit([&](Extent* extent) {
      all.push_back(extent);
      return true;
    });
    return all;
  }

  LeavingOrder order_;
  std::deque<Extent> extents_;
  uint64_t clock_ = 0;
  uint64_t looked_at_ = 0;
};

TEST_F(LeavingOrderTest, Visit_Touched_TheLeastRecentlyTouchedIsFirst) {
  Extent *a = Add(), *b = Add(), *c = Add();
  Touch(a);
  EXPECT_THAT(All(), ElementsAre(b, c, a));
}

TEST_F(LeavingOrderTest, Visit_UntilFalse_LooksAtNoMore) {
  Extent* a = Add();
  for (int i = 0; i < 10; ++i) Add();
  std::vector<Extent*> seen;
  EXPECT_EQ(order_.Visit([&](Extent* extent) {
    seen.push_back(extent);
    return false;
  }),
            1u);
  EXPECT_THAT(seen, ElementsAre(a));
}

TEST_F(LeavingOrderTest, Visit_Pinned_IsPassedOverAndStaysInItsPlace) {
  Extent *a = Add(), *b = Add();
  a->pins = 1;
  EXPECT_THAT(All(), ElementsAre(b));
  a->pins = 0;
  EXPECT_THAT(All(), ElementsAre(a, b));
}

TEST_F(LeavingOrderTest, Visit_WithoutEvidence_IsLookedAtOnce) {
  Extent *a = Add(), *b = Add();
  a->without_evidence = 1;
  EXPECT_THAT(All(), ElementsAre(b));
  EXPECT_EQ(looked_at_, 2u);
  EXPECT_THAT(All(), ElementsAre(b));
  EXPECT_EQ(looked_at_, 1u);
}

TEST_F(LeavingOrderTest, Restore_InTheMiddle_ComesByItsLastTouch) {
  Extent *a = Add(), *b = Add(), *c = Add(), *d = Add();
  order_.Remove(b);
  order_.Remove(d);
  EXPECT_THAT(All(), ElementsAre(a, c));
  order_.Restore(d);
  order_.Restore(b);
  order_.Restore(b);
  EXPECT_THAT(All(), ElementsAre(a, b, c, d));
}

TEST_F(LeavingOrderTest, Restore_ThenNoEvidence_IsDroppedFromTheTreeToo) {
  Extent *a = Add(), *b = Add();
  order_.Remove(b);
  order_.Restore(b);
  b->without_evidence = 1;
  EXPECT_THAT(All(), ElementsAre(a));
  EXPECT_EQ(b->in_leaving_order, InLeavingOrder::kNo);
  b->without_evidence = 0;
  order_.Restore(b);
  EXPECT_THAT(All(), ElementsAre(a, b));
}

TEST_F(LeavingOrderTest, Touch_ARestoredOne_MovesItToTheEnd) {
  Extent *a = Add(), *b = Add();
  order_.Remove(a);
  order_.Restore(a);
  Touch(a);
  EXPECT_THAT(All(), ElementsAre(b, a));
}

TEST_F(LeavingOrderTest, Remove_TheLastOne_LeavesNone) {
  order_.Remove(Add());
  EXPECT_THAT(All(), IsEmpty());
}

}  // namespace
}  // namespace weir
