#include "allocator/watch_need.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace weir {
namespace {

constexpr PageCount kRoom{1000};

class WatchNeedTest : public ::testing::Test {
 protected:
  // An extent of `pages` comes. True: that is new.
  bool Come(uint64_t pages, ExtentKind kind = ExtentKind::kLarge) {
    Extent& extent = alive_.emplace_back();
    extent.kind = kind;
    extent.pages.count = PageCount(pages);
    return need_.CountNew(extent, ++now_);
  }
  // The oldest goes.
  void Go() {
    need_.CountGone(alive_.front());
    alive_.pop_front();
  }
  void Pass(uint64_t allocations) { now_ += allocations; }
  bool MayEnd(PageCount room = kRoom) { return need_.MayEnd(now_, room); }

  WatchNeed need_;
  std::deque<Extent> alive_;
  uint64_t now_ = 0;
};

TEST_F(WatchNeedTest, CountNew_AsManyAsBefore_IsNotNew) {
  EXPECT_TRUE(Come(3));
  EXPECT_TRUE(Come(3));
  Go();
  Go();
  EXPECT_FALSE(Come(3));
  EXPECT_FALSE(Come(3));
  EXPECT_TRUE(Come(3));
}

TEST_F(WatchNeedTest, CountNew_AnotherSizeOrKind_IsNew) {
  Come(8);
  Go();
  EXPECT_TRUE(Come(7));
  Go();
  EXPECT_TRUE(Come(7, ExtentKind::kMedium));
  Go();
  EXPECT_TRUE(Come(1, ExtentKind::kSlab));
}

TEST_F(WatchNeedTest, CountNew_TheSameSizesAllAtOnce_IsNewByTheirSum) {
  Come(3);
  Go();
  Come(5);
  EXPECT_TRUE(Come(3)) << "eight pages at once";
}

TEST_F(WatchNeedTest, CountNew_LargerThanAnyCountedAlone_IsOneSize) {
  Come(5000);
  Go();
  EXPECT_FALSE(Come(4500));
}

TEST_F(WatchNeedTest, MayEnd_NothingNewForALittleWhile_NotYet) {
  Come(10);
  Pass(255);
  EXPECT_FALSE(MayEnd());
  Pass(1);
  EXPECT_TRUE(MayEnd());
}

TEST_F(WatchNeedTest, MayEnd_NewForLong_WaitsAsLongAgain) {
  for (uint64_t i = 0; i < 10; ++i) {
    Pass(99);
    Come(10 + i);
  }
  Pass(999);
  EXPECT_FALSE(MayEnd());
  Pass(1);
  EXPECT_TRUE(MayEnd());
}

TEST_F(WatchNeedTest, MayEnd_SomethingMoved_WaitsFromThere) {
  Come(10);
  Pass(1000);
  need_.CountMove(now_);
  Pass(300);
  EXPECT_FALSE(MayEnd());
}

TEST_F(WatchNeedTest, MayEnd_PeakNearTheCap_NotWhileItIsRepeated) {
  for (int step = 0; step < 20; ++step) {
    Come(10);
    Come(970);
    Go();
    Go();
    Pass(100);
    EXPECT_FALSE(MayEnd()) << "step " << step;
  }
}

TEST_F(WatchNeedTest, MayEnd_PeakThatIsPast_OnceItWasNotRepeated) {
  Come(970);
  Go();
  Come(10);
  Pass(2000);
  EXPECT_FALSE(MayEnd());
  Pass(2000);
  EXPECT_TRUE(MayEnd());
}

TEST_F(WatchNeedTest, Begin_Again_CountsFromThere) {
  for (uint64_t i = 0; i < 1000; ++i) {
    Come(1);
    Go();
    Pass(1);
  }
  Come(2);
  need_.Begin(now_);
  Pass(256);
  EXPECT_TRUE(MayEnd());
}

TEST_F(WatchNeedTest, IsNear_MoreThanTwoFifths) {
  Come(400);
  EXPECT_FALSE(need_.IsNear(kRoom));
  Come(1);
  EXPECT_TRUE(need_.IsNear(kRoom));
}

}  // namespace
}  // namespace weir
