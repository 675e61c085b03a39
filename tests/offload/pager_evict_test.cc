// Eviction: who leaves, in which order, and what happens when it cannot be done or is overtaken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::Fault;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PagerEvictTest : public ::testing::Test {
 protected:
  bool AllocationFails(Bytes size) {
    return absl::IsResourceExhausted(device_.Allocate(size, kStreamA, fixture_.no_op).status());
  }

  PagerFixture fixture_{PageCount(8), PageCount(16)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
  Pager& pager_ = fixture_.pager;
  OpPins& op_ = fixture_.op;
};

TEST_F(PagerEvictTest, Allocate_NoRoom_TheLeastRecentlyUsedLeaves) {
  Tensor first = fixture_.Make(kLarge, 1), second = fixture_.Make(kLarge, 2),
         third = fixture_.Make(kLarge, 3);
  fixture_.Use(first);
  fixture_.Allocate(kLarge * 2);
  EXPECT_EQ(fixture_.state(first), Residency::kResident);
  EXPECT_EQ(fixture_.state(second), Residency::kInRam);
  EXPECT_EQ(fixture_.state(third), Residency::kResident);
  PagerCounters counters = pager_.Counters();
  EXPECT_EQ(counters.evictions, 1u);
  EXPECT_EQ(counters.evicted_bytes, kLarge);
  EXPECT_EQ(counters.copies, 1u);
}

// R9: the copy out waits for every stream that used the extent.
TEST_F(PagerEvictTest, Evict_UsedOnTwoStreams_TheCopyWaitsForBoth) {
  Tensor tensor = fixture_.Make(kLarge, 1, kStreamA);
  {
    OpScope op(op_, "write on B");
    driver_.StreamWaitsFor(kStreamB, kStreamA);
    ASSERT_TRUE(fixture_.Touch({&tensor}, op_, kStreamB).ok());
    fixture_.Write(tensor.at, kLarge, 2, kStreamB);
  }
  tensor.pattern = 2;
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamC);
  fixture_.Use(tensor, kStreamC, "the bytes that B wrote");
}

TEST_F(PagerEvictTest, Evict_OpUsedItOnAStreamThatItDidNotSay_TheCopyWaitsForThat) {
  Tensor tensor = fixture_.Make(kLarge, 1, kStreamA);
  op_.Enter("custom::op", OpPins::Streams::kAny);
  ASSERT_TRUE(fixture_.Touch({&tensor}, op_, kStreamA).ok());
  driver_.StreamWaitsFor(kStreamB, kStreamA);
  fixture_.Write(tensor.at, kLarge, 2, kStreamB);
  op_.Leave();
  tensor.pattern = 2;
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamC);
  fixture_.Use(tensor, kStreamC, "the bytes that B wrote");
}

TEST_F(PagerEvictTest, Evict_NeverAnInputOfAnOp_Stays) {
  {
    OpScope op(op_, "factory");
    ASSERT_TRUE(device_.Allocate(kLarge, kStreamA, op_).ok());
  }
  EXPECT_TRUE(AllocationFails(kPageBytes * 7));
  EXPECT_EQ(pager_.Counters().evictions, 0u);
}

TEST_F(PagerEvictTest, Evict_OneBlockOfTheExtentWithoutEvidence_AllStays) {
  Tensor seen = fixture_.Make(kMedium, 1);
  DeviceAddr unseen = fixture_.Allocate(kMedium);
  ASSERT_EQ(unseen, seen.at + kMedium);
  EXPECT_TRUE(AllocationFails(kPageBytes * 7));
  fixture_.Free(unseen);
  fixture_.Allocate(kPageBytes * 7);
  EXPECT_EQ(fixture_.state(seen), Residency::kInRam);
}

// R1: pins last to the end of the outermost op.
TEST_F(PagerEvictTest, Evict_PinnedByTheOpInFlight_Stays) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  op_.Enter("outer");
  op_.Enter("inner");
  ASSERT_TRUE(fixture_.Touch({&tensor}, op_).ok());
  op_.Leave();
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(kPageBytes * 7, kStreamA, op_).status()));
  EXPECT_EQ(fixture_.state(tensor), Residency::kResident);
  op_.Leave();
  fixture_.Allocate(kPageBytes * 7);
  EXPECT_EQ(fixture_.state(tensor), Residency::kInRam);
}

TEST_F(PagerEvictTest, Allocate_Refused_SaysWhatWasNeededAndWhy) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  OpScope op(op_, "aten::greedy");
  ASSERT_TRUE(fixture_.Touch({&tensor}, op_).ok());
  absl::Status status = device_.Allocate(kPageBytes * 8, kStreamA, op_).status();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("aten::greedy"), HasSubstr("20.00 MiB"),
                                                   HasSubstr("16.00 MiB"), HasSubstr("WEIR_VRAM")));
}

TEST_F(PagerEvictTest, Allocate_DriverRefusesAFrame_IsAskedAgainBeforeTheOpFails) {
  const absl::Status refusal = absl::ResourceExhaustedError("others took it");
  driver_.PlanFault(Fault{.call = Call::kCreateFrame, .status = refusal});
  EXPECT_FALSE(AllocationFails(kLarge));
  driver_.PlanFault(Fault{.call = Call::kCreateFrame, .for_good = true, .status = refusal});
  EXPECT_TRUE(AllocationFails(kPageBytes * 4));
  EXPECT_EQ(driver_.faults(), 2u);
  driver_.ClearFault();
  EXPECT_FALSE(AllocationFails(kPageBytes * 4));
}

TEST_F(PagerEvictTest, Evict_BlindThread_NothingLeaves) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  pager_.AddBlindThread(1);
  EXPECT_TRUE(AllocationFails(kPageBytes * 8));
  EXPECT_EQ(fixture_.state(tensor), Residency::kResident);
  pager_.AddBlindThread(-1);
  fixture_.Allocate(kPageBytes * 8);
}

TEST_F(PagerEvictTest, Evict_RamBudgetUsedUp_LosesNothing) {
  std::vector<Tensor> tensors;
  for (uint32_t pattern = 1; pattern <= 12; ++pattern) tensors.push_back(fixture_.Make(kLarge, pattern));
  EXPECT_EQ(fixture_.ram.used(), fixture_.ram.budget());
  absl::Status status = device_.Allocate(kLarge, kStreamA, fixture_.no_op).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("WEIR_RAM"));
  EXPECT_TRUE(device_.IsValid());
  fixture_.Drop(tensors.back());  // a page for the fetches to turn around in
  tensors.pop_back();
  for (const Tensor& tensor : tensors) fixture_.Use(tensor, kStreamA, "after the refusal");
}

TEST_F(PagerEvictTest, Evict_VictimTooLargeForTheRamThatIsLeft_AnotherOneLeaves) {
  PagerFixture fixture{PageCount(8), PageCount(2)};
  Tensor large = fixture.Make(kPageBytes * 5, 1), small = fixture.Make(kLarge, 2);
  fixture.Allocate(kLarge);
  EXPECT_EQ(fixture.state(large), Residency::kResident);
  EXPECT_EQ(fixture.state(small), Residency::kInRam);
}

// C41
TEST_F(PagerEvictTest, Evict_FillingExtent_GoesBackWithItsBytes) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  fixture_.EvictByPressure(tensor, kPageBytes * 8);
  fixture_.Use(tensor, kStreamB);
  ASSERT_EQ(fixture_.state(tensor), Residency::kFilling);
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamA);
  fixture_.Use(tensor, kStreamC, "after the second round trip");
  EXPECT_EQ(fixture_.ram.used(), kLarge);
}

// The wait of an eviction is where other threads overtake it.
TEST_F(PagerEvictTest, Free_WhileDraining_FramesAndSlotsComeBack) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  bool freed = false;
  driver_.SetWaitHook([&] {
    if (freed) return;
    EXPECT_EQ(fixture_.state(tensor), Residency::kDraining);
    fixture_.Drop(tensor);
    freed = true;
  });
  DeviceAddr all = fixture_.Allocate(kPageBytes * 8);
  driver_.SetWaitHook(nullptr);
  EXPECT_TRUE(freed);
  EXPECT_TRUE(device_.IsValid());
  EXPECT_EQ(tensor.storage->held, 0);
  fixture_.Free(all);
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), Bytes());
}

TEST_F(PagerEvictTest, Free_OneBlockWhileDraining_TheOtherSurvives) {
  Tensor keep = fixture_.Make(kMedium, 1), gone = fixture_.Make(kMedium, 2);
  bool freed = false;
  driver_.SetWaitHook([&] {
    if (!freed) fixture_.Drop(gone);
    freed = true;
  });
  fixture_.EvictByPressure(keep, kPageBytes * 8);
  driver_.SetWaitHook(nullptr);
  fixture_.Use(keep);
  EXPECT_EQ(fixture_.Allocate(kMedium), gone.at);  // the hole is there again
}

TEST_F(PagerEvictTest, Free_WhileDrainingAndTheCopyFails_FramesAndSlotsComeBack) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  bool freed = false;
  driver_.SetWaitHook([&] {
    if (!freed) fixture_.Drop(tensor);
    freed = true;
  });
  driver_.PlanFault(Fault{.call = Call::kSynchronizeEvent});
  EXPECT_FALSE(device_.Allocate(kPageBytes * 8, kStreamA, fixture_.no_op).ok());
  driver_.SetWaitHook(nullptr);
  driver_.ClearFault();
  EXPECT_TRUE(freed);
  EXPECT_TRUE(device_.IsValid());
  fixture_.Allocate(kPageBytes * 8);
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), Bytes());
}

TEST_F(PagerEvictTest, Evict_Waiting_HoldsNoLock) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  int waits = 0;
  driver_.SetWaitHook([&] {
    ++waits;
    auto found = std::async(std::launch::async, [&] { return device_.FindBlock(tensor.at).has_value(); });
    ASSERT_EQ(found.wait_for(std::chrono::seconds(5)), std::future_status::ready) << "the device is locked";
  });
  fixture_.Allocate(kPageBytes * 8);
  driver_.SetWaitHook(nullptr);
  EXPECT_GT(waits, 0);
}

TEST_F(PagerEvictTest, Evict_StreamOfAUseWasDestroyed_WaitsForItsWork) {
  Tensor tensor = fixture_.Make(kLarge, 1, kStreamB);
  driver_.DestroyStream(kStreamB);
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamA);
  fixture_.Use(tensor, kStreamA);
}

TEST_F(PagerEvictTest, Evict_CopyFails_TheTensorStaysAndIsAllowedAgain) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  driver_.PlanFault(Fault{.call = Call::kCopyToHost});
  EXPECT_FALSE(device_.Allocate(kPageBytes * 8, kStreamA, fixture_.no_op).ok());
  EXPECT_EQ(fixture_.state(tensor), Residency::kResident);
  EXPECT_FALSE(tensor.storage->denied);
  EXPECT_EQ(fixture_.ram.used(), Bytes());
  fixture_.Use(tensor);
}

TEST_F(PagerEvictTest, Evict_RecordedStream_TheFreeAfterwardsIsNotLost) {
  Tensor tensor = fixture_.Make(kLarge, 1);
  device_.RecordStream(tensor.at, kStreamB);
  fixture_.EvictByPressure(tensor, kPageBytes * 8);
  fixture_.Drop(tensor);  // deferred, in RAM
  driver_.FinishEverything();
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/false));
  pager_.Trim();
  EXPECT_EQ(fixture_.ram.used(), Bytes());
  EXPECT_EQ(tensor.storage->held, 0);
}

TEST_F(PagerEvictTest, FramesHeld_HalfOfTheCap_PinsRamBeforeItIsNeeded) {
  fixture_.Allocate(kPageBytes * 4);
  EXPECT_EQ(fixture_.ram.pinned(), Bytes());
  fixture_.Allocate(kLarge);
  EXPECT_GT(fixture_.ram.pinned(), Bytes());
}

// Every driver call of an eviction fails once: nothing is lost, and a retry works.
TEST_F(PagerEvictTest, Evict_NthDriverCallFails_LosesNothing) {
  for (uint64_t nth = 1;; ++nth) {
    Tensor first = fixture_.Make(kLarge, 1), second = fixture_.Make(kLarge, 2, kStreamB);
    driver_.PlanFault(Fault{.nth = nth});
    absl::StatusOr<DeviceAddr> all = device_.Allocate(kPageBytes * 8, kStreamA, fixture_.no_op);
    uint64_t faults = driver_.faults();
    driver_.ClearFault();
    EXPECT_TRUE(device_.IsValid()) << "call " << nth;
    if (all.ok()) fixture_.Free(*all);
    if (device_.frames().ceiling() < PageCount(8)) device_.EmptyCache();
    // On another stream, which nothing orders after what may have been left behind.
    fixture_.EvictByPressure(first, kPageBytes * 8, kStreamC);
    fixture_.Use(first, kStreamA, "first");
    fixture_.Use(second, kStreamA, "second");
    fixture_.Drop(first);
    fixture_.Drop(second);
    if (faults == 0) break;
    ASSERT_LT(nth, 200u);
  }
}

}  // namespace
}  // namespace weir
