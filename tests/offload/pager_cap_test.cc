// The cap changes while tensors are in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PagerCapTest : public ::testing::Test {
 protected:
  PagerFixture fixture_{PageCount(8), PageCount(16)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
  Pager& pager_ = fixture_.pager;
};

TEST_F(PagerCapTest, SetCap_Lower_WhatIsAboveLeavesAndComesBackWithItsBytes) {
  Tensor first = fixture_.Make(kLarge, 1), second = fixture_.Make(kLarge, 2),
         third = fixture_.Make(kLarge, 3);
  ASSERT_GT(driver_.frames(), kLarge * 2);
  ASSERT_TRUE(pager_.SetCap(kLarge * 2, fixture_.no_op).ok());
  EXPECT_EQ(device_.cap(), kLarge * 2);
  EXPECT_LE(driver_.frames(), kLarge * 2);
  EXPECT_EQ(fixture_.state(first), Residency::kInRam);
  EXPECT_TRUE(device_.IsValid());
  for (const Tensor* tensor : {&first, &second, &third}) fixture_.Use(*tensor);
  EXPECT_LE(driver_.frames(), kLarge * 2);
}

TEST_F(PagerCapTest, SetCap_MoreThanHalfGoes_InOneCall) {
  Tensor first = fixture_.Make(kLarge, 1), second = fixture_.Make(kLarge, 2),
         third = fixture_.Make(kLarge, 3);
  ASSERT_TRUE(pager_.SetCap(kPageBytes, fixture_.no_op).ok());
  EXPECT_LE(driver_.frames(), kPageBytes);
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerCapTest, SetCap_OnceItCan_WhatIsFreedAboveItIsNotHandedOutAgain) {
  const DeviceAddr pinned[] = {fixture_.Allocate(kLarge), fixture_.Allocate(kLarge),
                               fixture_.Allocate(kLarge)};
  EXPECT_FALSE(fixture_.pager.SetCap(MiB(4), fixture_.op, Pager::Lowering::kOnceItCan).ok());
  for (DeviceAddr at : pinned) fixture_.Free(at);
  fixture_.Allocate(kLarge);
  EXPECT_EQ(device_.frames().counted(), PageCount(2));
  EXPECT_EQ(device_.frames().cap(), PageCount(2));
}

TEST_F(PagerCapTest, SetCap_BelowWhatAnOpHolds_TheCapStays) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  OpScope op(fixture_.op, "holds");
  ASSERT_TRUE(fixture_.Touch({&tensor}, fixture_.op).ok());
  const absl::Status status = pager_.SetCap(kPageBytes, fixture_.op);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("does not fit under a cap of 2.00 MiB, which stays 16.00 MiB"));
  // What the op holds is the smallest cap; nobody but the op is in the way.
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("smallest cap that holds what cannot leave: 4.00 MiB"),
                    HasSubstr("try: a cap of 4MiB or more"), Not(HasSubstr("The driver gave no more"))));
  EXPECT_EQ(device_.cap(), kPageBytes * 8);
  EXPECT_EQ(device_.frames().cap(), PageCount(8));
  fixture_.Allocate(kLarge);
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerCapTest, SetCap_BelowWhatAnOpHolds_OnceItCan_HoldsWhenTheOpHasEnded) {
  Tensor tensor = fixture_.Make(kLarge, 1), other = fixture_.Make(kLarge, 2);
  {
    OpScope op(fixture_.op, "holds");
    ASSERT_TRUE(fixture_.Touch({&tensor}, fixture_.op).ok());
    EXPECT_TRUE(
        absl::IsResourceExhausted(pager_.SetCap(kPageBytes, fixture_.op, Pager::Lowering::kOnceItCan)));
    EXPECT_EQ(device_.cap(), kPageBytes);
    EXPECT_FALSE(device_.Allocate(kPageBytes, kStreamA, fixture_.op).ok());
  }
  EXPECT_FALSE(
      device_.Allocate(kLarge, kStreamA, fixture_.no_op).ok());  // more than the cap, but all has left for it
  EXPECT_TRUE(device_.Allocate(kPageBytes, kStreamA, fixture_.no_op).ok());
  EXPECT_LE(driver_.frames(), kPageBytes);
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerCapTest, SetCap_Higher_NothingLeavesAnyMore) {
  PagerFixture small(PageCount(4), PageCount(16));
  small.driver.SetFrameLimit(kPageBytes * 64);
  Tensor first = small.Make(kLarge, 1), second = small.Make(kLarge, 2);
  ASSERT_TRUE(small.pager.SetCap(kPageBytes * 64, small.no_op).ok());
  small.Use(first);
  small.Use(second);
  const uint64_t evictions = small.pager.Counters().evictions;
  for (int i = 0; i < 4; ++i) {
    small.Use(first);
    small.Use(second);
  }
  Tensor third = small.Make(kLarge, 3);
  EXPECT_EQ(small.pager.Counters().evictions, evictions);
}

}  // namespace
}  // namespace weir
