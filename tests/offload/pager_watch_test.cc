// The times in which nobody watches the job's ops (R6): nothing moves in them, and what moves afterwards was seen since.
#include <gtest/gtest.h>

#include <string>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

class PagerWatchTest : public ::testing::Test {
 protected:
  PagerWatchTest() : fixture_(PageCount(8), PageCount(32)) {}

  // Fails for want of room, and the message says why.
  std::string Refused() {
    absl::StatusOr<DeviceAddr> at = fixture_.device->Allocate(kLarge, Lane(kStreamA), fixture_.op);
    EXPECT_TRUE(absl::IsResourceExhausted(at.status())) << at.status();
    return std::string(at.status().message());
  }

  PagerFixture fixture_;
};

TEST_F(PagerWatchTest, TryEndWatch_EverythingIsInVram_Ends) {
  EXPECT_TRUE(fixture_.pager.TryEndWatch(false));
}

TEST_F(PagerWatchTest, TryEndWatch_NotQuietYet_OnlyIfNotAsked) {
  Tensor a = fixture_.Make(kLarge, 1);
  EXPECT_FALSE(fixture_.pager.TryEndWatch(true));
  EXPECT_TRUE(fixture_.pager.TryEndWatch(false));
}

TEST_F(PagerWatchTest, TryEndWatch_ATensorIsInRam_DoesNotEnd) {
  Tensor a = fixture_.Make(kLarge, 1);
  fixture_.EvictByPressure(a, MiB(16));
  EXPECT_FALSE(fixture_.pager.TryEndWatch(false));
  fixture_.Use(a);
  fixture_.driver.FinishEverything();
  EXPECT_TRUE(fixture_.pager.TryEndWatch(false));
}

TEST_F(PagerWatchTest, TryEndWatch_ACopyBackIsUnderWay_DoesNotEnd) {
  Tensor a = fixture_.Make(kLarge, 1);
  fixture_.EvictByPressure(a, MiB(16));
  fixture_.Use(a);
  ASSERT_EQ(fixture_.state(a), Residency::kFilling);
  EXPECT_FALSE(fixture_.pager.TryEndWatch(false));
}

TEST_F(PagerWatchTest, Evict_WhileNobodyWatches_NothingLeaves) {
  Tensor tensors[] = {fixture_.Make(kLarge, 1), fixture_.Make(kLarge, 2), fixture_.Make(kLarge, 3),
                      fixture_.Make(kLarge, 4)};
  ASSERT_TRUE(fixture_.pager.TryEndWatch(false));
  EXPECT_NE(Refused().find("not watched at present"), std::string::npos);
  for (const Tensor& tensor : tensors) EXPECT_EQ(fixture_.state(tensor), Residency::kResident);
}

TEST_F(PagerWatchTest, KeepWatch_AfterTheEnd_WhatWasSeenStillCounts) {
  Tensor a = fixture_.Make(kLarge, 1);
  ASSERT_TRUE(fixture_.pager.TryEndWatch(false));
  fixture_.pager.KeepWatch();
  fixture_.EvictByPressure(a, MiB(16));
}

TEST_F(PagerWatchTest, BeginWatch_Again_WhatWasSeenBeforeMayLeave) {
  Tensor a = fixture_.Make(kLarge, 1), b = fixture_.Make(kLarge, 2), c = fixture_.Make(kLarge, 3);
  ASSERT_TRUE(fixture_.pager.TryEndWatch(false));
  const DeviceAddr unseen = fixture_.Allocate(kLarge, kStreamA);
  fixture_.pager.BeginWatch();
  fixture_.Allocate(MiB(12), kStreamA);
  for (const Tensor* tensor : {&a, &b, &c}) EXPECT_EQ(fixture_.state(*tensor), Residency::kInRam);
  EXPECT_TRUE(fixture_.pager.IsResident(unseen));
}

TEST_F(PagerWatchTest, ForgetEvidence_OnlyWhatIsSeenSinceLeaves) {
  Tensor a = fixture_.Make(kLarge, 1), b = fixture_.Make(kLarge, 2), c = fixture_.Make(kLarge, 3),
         d = fixture_.Make(kLarge, 4);
  ASSERT_TRUE(fixture_.pager.TryEndWatch(false));
  fixture_.pager.BeginWatch();
  fixture_.pager.ForgetEvidence();
  EXPECT_NE(Refused().find("never seen as an op's input"), std::string::npos);
  fixture_.Use(c);
  fixture_.Allocate(kLarge, kStreamA);
  EXPECT_EQ(fixture_.state(c), Residency::kInRam);
  for (const Tensor* tensor : {&a, &b, &d}) EXPECT_EQ(fixture_.state(*tensor), Residency::kResident);
}

// A kernel that was queued unseen, on a stream of which nothing is known, writes what then leaves.
TEST_F(PagerWatchTest, BeginWatch_WorkQueuedUnseen_HasPassedBeforeAnythingLeaves) {
  Tensor a = fixture_.Make(kLarge, 1), b = fixture_.Make(kLarge, 2), c = fixture_.Make(kLarge, 3),
         d = fixture_.Make(kLarge, 4);
  fixture_.driver.FinishEverything();
  ASSERT_TRUE(fixture_.pager.TryEndWatch(false));
  a.pattern = 77;
  fixture_.Write(a.at, a.size, a.pattern, kStreamB);
  fixture_.pager.BeginWatch();
  fixture_.pager.ForgetEvidence();  // so that it is the one that leaves
  {
    OpScope op(fixture_.op, "view");  // sees it, and uses no byte
    ASSERT_TRUE(fixture_.Touch({&a}, fixture_.op).ok());
  }
  fixture_.Allocate(kLarge, kStreamA);
  ASSERT_EQ(fixture_.state(a), Residency::kInRam);
  fixture_.Drop(b);
  fixture_.Use(a, kStreamA, "written unseen");
}

}  // namespace
}  // namespace weir
