#include "allocator/frame_pool.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/fakes/fake_driver.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::FakeDriver;
using fakes::Fault;

constexpr DeviceIndex kDevice{0};

class FramePoolTest : public ::testing::Test {
 protected:
  FramePoolTest() { driver_.SetFrameLimit(kPageBytes * 8); }

  FakeDriver driver_;
  FramePool pool_{driver_, kDevice, kPageBytes * 8 + Bytes(4096)};  // rounded down to 8 pages
};

TEST_F(FramePoolTest, TryReserve_UpToTheCap_Works_BeyondIt_GivesNone) {
  auto all = pool_.TryReserve(PageCount(8));
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(pool_.held(), PageCount(8));
  EXPECT_EQ(pool_.Available(), PageCount());
  EXPECT_FALSE(pool_.TryReserve(PageCount(1)).has_value());
  EXPECT_EQ(driver_.frames(), kPageBytes * 8);
}

TEST_F(FramePoolTest, TryReserve_MoreThanLeft_TakesNothing) {
  auto some = pool_.TryReserve(PageCount(5));
  EXPECT_FALSE(pool_.TryReserve(PageCount(4)).has_value());
  EXPECT_EQ(pool_.held(), PageCount(5));
  EXPECT_TRUE(pool_.TryReserve(PageCount(3)).has_value());
}

TEST_F(FramePoolTest, Reservation_Destroyed_GivesBackWhatWasNotTaken) {
  FrameHandle taken;
  {
    auto frames = pool_.TryReserve(PageCount(3));
    taken = frames->Take();
    EXPECT_EQ(frames->size(), PageCount(2));
  }
  EXPECT_EQ(pool_.pooled(), PageCount(2));
  pool_.Return({taken});
  EXPECT_EQ(pool_.pooled(), PageCount(3));
  EXPECT_EQ(pool_.held(), PageCount(3));
}

TEST_F(FramePoolTest, Reservation_Moved_GivesBackOnce) {
  static_assert(!std::is_copy_constructible_v<FrameReservation>);
  auto first = pool_.TryReserve(PageCount(2));
  FrameReservation second = *std::move(first);
  first.reset();
  EXPECT_EQ(pool_.pooled(), PageCount());
  auto third = pool_.TryReserve(PageCount(1));
  second = *std::move(third);  // gives its own two back
  EXPECT_EQ(pool_.pooled(), PageCount(2));
  EXPECT_EQ(second.size(), PageCount(1));
}

TEST_F(FramePoolTest, Reservation_PutBack_IsGivenBackWithTheRest) {
  {
    auto frames = pool_.TryReserve(PageCount(2));
    std::vector<FrameHandle> taken = {frames->Take(), frames->Take()};
    frames->PutBack(std::move(taken));
    EXPECT_EQ(frames->size(), PageCount(2));
  }
  EXPECT_EQ(pool_.pooled(), PageCount(2));
}

TEST_F(FramePoolTest, TryReserve_PooledFrames_MakesNoDriverCall) {
  pool_.TryReserve(PageCount(4)).reset();
  uint64_t calls = driver_.calls();
  EXPECT_TRUE(pool_.TryReserve(PageCount(4)).has_value());
  EXPECT_EQ(driver_.calls(), calls);
}

TEST_F(FramePoolTest, TryReserve_DriverRefuses_LowersTheCeilingUntilTrim) {
  auto held = pool_.TryReserve(PageCount(2));
  driver_.PlanFault(
      Fault{.call = Call::kCreateFrame, .nth = 2, .status = absl::ResourceExhaustedError("others took it")});
  EXPECT_FALSE(pool_.TryReserve(PageCount(3)).has_value());
  EXPECT_EQ(pool_.held(), PageCount(3));  // the one that was made is kept
  EXPECT_EQ(pool_.ceiling(), PageCount(3));
  EXPECT_EQ(pool_.Available(), PageCount(1));
  EXPECT_FALSE(pool_.TryReserve(PageCount(2)).has_value());
  pool_.Trim();
  EXPECT_EQ(pool_.ceiling(), PageCount(8));
  EXPECT_EQ(pool_.held(), PageCount(2));
  EXPECT_TRUE(pool_.TryReserve(PageCount(6)).has_value());
}

TEST_F(FramePoolTest, Trim_PooledFrames_GoBackToTheDriver) {
  auto used = pool_.TryReserve(PageCount(1));
  pool_.TryReserve(PageCount(4)).reset();
  pool_.Trim();
  EXPECT_EQ(driver_.frames(), kPageBytes);
  EXPECT_EQ(pool_.held(), PageCount(1));
  EXPECT_EQ(pool_.peak_held(), PageCount(5));
  pool_.ResetPeak();
  EXPECT_EQ(pool_.peak_held(), PageCount(1));
}

TEST_F(FramePoolTest, Trim_ReleaseFails_TheFrameStillCounts) {
  pool_.TryReserve(PageCount(3)).reset();
  driver_.PlanFault(Fault{.call = Call::kReleaseFrame, .nth = 2});
  pool_.Trim();
  EXPECT_EQ(pool_.held().bytes(), driver_.frames());
  driver_.ClearFault();
  EXPECT_TRUE(pool_.TryReserve(PageCount(8)).has_value());
  EXPECT_EQ(driver_.peak_frames(), kPageBytes * 8);
}

TEST_F(FramePoolTest, TryTakeOutside_CountsUnderTheCapUntilGivenBack) {
  EXPECT_TRUE(pool_.TryTakeOutside(kPageBytes * 3 + Bytes(1), FrameReservation()));
  EXPECT_EQ(pool_.counted(), PageCount(4));
  EXPECT_EQ(pool_.held(), PageCount());
  EXPECT_EQ(pool_.peak_held(), PageCount(4));
  EXPECT_EQ(pool_.ceiling(), PageCount(4));
  EXPECT_FALSE(pool_.TryReserve(PageCount(5)).has_value());
  auto rest = pool_.TryReserve(PageCount(4));
  EXPECT_TRUE(rest.has_value());
  EXPECT_TRUE(pool_.TryTakeOutside(kPageBytes - Bytes(1), FrameReservation())) << "the rest of the last page";
  EXPECT_FALSE(pool_.TryTakeOutside(Bytes(1), FrameReservation()));
  pool_.GiveOutside(kPageBytes * 4);
  EXPECT_EQ(pool_.counted(), PageCount(4));
  EXPECT_TRUE(pool_.TryReserve(PageCount(4)).has_value());
}

TEST_F(FramePoolTest, TryTakeOutside_PooledFrames_AreReleasedOnlyAsFarAsNeeded) {
  { auto pooled = pool_.TryReserve(PageCount(8)); }
  EXPECT_TRUE(pool_.TryTakeOutside(kPageBytes * 3, FrameReservation()));
  EXPECT_EQ(driver_.frames(), kPageBytes * 5);
  EXPECT_EQ(pool_.counted(), PageCount(8));
}

TEST_F(FramePoolTest, TryTakeOutside_FramesThatMakeWay_AreReleased) {
  auto all = pool_.TryReserve(PageCount(8));
  std::vector<FrameHandle> used;
  for (int i = 0; i < 5; ++i) used.push_back(all->Take());
  EXPECT_FALSE(pool_.TryTakeOutside(kPageBytes * 4, FrameReservation()));
  EXPECT_TRUE(pool_.TryTakeOutside(kPageBytes * 3, *std::move(all)));
  EXPECT_EQ(driver_.frames(), kPageBytes * 5);
  EXPECT_EQ(pool_.pooled(), PageCount());
  pool_.Return(used);
}

TEST_F(FramePoolTest, TryTakeOutside_ReleaseFails_TakesNothing) {
  { auto pooled = pool_.TryReserve(PageCount(8)); }
  driver_.PlanFault(Fault{.call = Call::kReleaseFrame, .for_good = true});
  EXPECT_FALSE(pool_.TryTakeOutside(kPageBytes, FrameReservation()));
  EXPECT_EQ(pool_.counted(), PageCount(8));
}

TEST_F(FramePoolTest, TryReserve_TwoThreads_NeverExceedTheCap) {
  auto work = [&] {
    for (int i = 0; i < 500; ++i) {
      auto frames = pool_.TryReserve(PageCount(1 + i % 5));
      if (frames.has_value() && i % 3 == 0) pool_.Return({frames->Take()});
      if (i % 50 == 0) pool_.Trim();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(pool_.pooled(), pool_.held());
  EXPECT_EQ(pool_.held().bytes(), driver_.frames());
}

TEST_F(FramePoolTest, WantCap_BelowWhatIsInUse_TheCapFollowsOnceFramesAreBack) {
  auto six = pool_.TryReserve(PageCount(6));
  pool_.WantCap(kPageBytes * 4);
  EXPECT_FALSE(pool_.TryReserve(PageCount(1)).has_value());
  EXPECT_FALSE(pool_.CommitCap());
  EXPECT_EQ(pool_.cap(), PageCount(8));
  EXPECT_EQ(pool_.held(), PageCount(6));
  six.reset();
  EXPECT_TRUE(pool_.CommitCap());
  EXPECT_EQ(pool_.cap(), PageCount(4));
  EXPECT_EQ(pool_.held(), PageCount(4));
  EXPECT_EQ(driver_.frames(), kPageBytes * 4);
  EXPECT_FALSE(pool_.TryReserve(PageCount(5)).has_value());
  pool_.Trim();
  EXPECT_EQ(pool_.ceiling(), PageCount(4));
}

TEST_F(FramePoolTest, KeepCap_AfterWantCap_FramesUpToTheOldCap) {
  pool_.WantCap(kPageBytes * 4);
  pool_.KeepCap();
  EXPECT_EQ(pool_.cap(), PageCount(8));
  EXPECT_TRUE(pool_.TryReserve(PageCount(8)).has_value());
}

TEST_F(FramePoolTest, WantCap_Higher_HoldsAtOnce) {
  FramePool small(driver_, kDevice, kPageBytes * 2);
  EXPECT_FALSE(small.TryReserve(PageCount(3)).has_value());
  small.WantCap(kPageBytes * 4);
  EXPECT_TRUE(small.CommitCap());
  EXPECT_TRUE(small.TryReserve(PageCount(4)).has_value());
}

}  // namespace
}  // namespace weir
