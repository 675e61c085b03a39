// The fake driver must see what it is there for.
#include "tests/fakes/fake_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::fakes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr DeviceIndex kDevice{0};
constexpr Stream kStreamA(1), kStreamB(2);

class FakeDriverTest : public ::testing::Test {
 protected:
  // Two mapped pages.
  FakeDriverTest() {
    base_ = *driver_.ReserveAddresses(kPageBytes * 8);
    for (uint64_t page : {0, 1}) {
      frames_[page] = *driver_.CreateFrame(kDevice, kPageBytes);
      EXPECT_TRUE(driver_.Map(base_ + kPageBytes * page, kPageBytes, frames_[page]).ok());
    }
    EXPECT_TRUE(driver_.SetAccess({kDevice}, base_, kPageBytes * 2).ok());
  }
  DeviceRange Range() const { return DeviceRange{base_, kPageBytes * 2}; }

  FakeDriver driver_;
  ScopedContext context_{driver_, kDevice};
  DeviceAddr base_;
  FrameHandle frames_[2];
};

TEST_F(FakeDriverTest, Kernel_Queued_RunsOnlyWhenWaitedFor) {
  bool ran = false;
  driver_.RunKernel(kStreamA, {}, {Range()}, [&](const auto&, const auto&) { ran = true; });
  Event event = *driver_.CreateEvent();
  ASSERT_TRUE(driver_.RecordEvent(event, kStreamA).ok());
  EXPECT_FALSE(*driver_.QueryEvent(event));
  EXPECT_FALSE(ran);
  ASSERT_TRUE(driver_.SynchronizeEvent(event).ok());
  EXPECT_TRUE(ran);
  EXPECT_TRUE(*driver_.QueryEvent(event));
}

TEST_F(FakeDriverTest, Copy_ToHostAndBack_CarriesPatterns) {
  void* host = *driver_.HostAlloc(kPageBytes * 2);
  WritePattern(driver_, kStreamA, Range(), 7);
  ASSERT_TRUE(driver_.CopyToHost(host, base_, kPageBytes * 2, kStreamA).ok());
  WritePattern(driver_, kStreamA, Range(), 8);
  ASSERT_TRUE(driver_.CopyToDevice(base_, host, kPageBytes * 2, kStreamA).ok());
  CheckPattern(driver_, kStreamA, Range(), 7, "after the round trip");
  driver_.FinishEverything();
  EXPECT_TRUE(driver_.HostFree(host).ok());
}

TEST_F(FakeDriverTest, WaitEvent_OtherStream_OrdersAndRunsTheProducerFirst) {
  WritePattern(driver_, kStreamA, Range(), 7);
  Event event = *driver_.CreateEvent();
  ASSERT_TRUE(driver_.RecordEvent(event, kStreamA).ok());
  ASSERT_TRUE(driver_.WaitEvent(kStreamB, event).ok());
  CheckPattern(driver_, kStreamB, Range(), 7, "on the waiting stream");
  driver_.FinishEverything();
  EXPECT_THAT(driver_.misuses(), IsEmpty());
}

TEST_F(FakeDriverTest, Read_NotOrderedAfterWrite_IsMisuse) {
  driver_.ExpectMisuse();
  WritePattern(driver_, kStreamA, Range(), 7);
  driver_.RunKernel(kStreamB, {Range()}, {}, [](const auto&, const auto&) {});
  EXPECT_THAT(driver_.misuses(), ElementsAre(HasSubstr("read is not ordered after a write")));
}

TEST_F(FakeDriverTest, Write_NotOrderedAfterRead_IsMisuse) {
  driver_.ExpectMisuse();
  driver_.RunKernel(kStreamB, {Range()}, {}, [](const auto&, const auto&) {});
  WritePattern(driver_, kStreamA, Range(), 7);
  EXPECT_THAT(driver_.misuses(), ElementsAre(HasSubstr("write is not ordered after a read")));
}

TEST_F(FakeDriverTest, Unmap_WhileInFlight_IsMisuse) {
  driver_.ExpectMisuse();
  WritePattern(driver_, kStreamA, Range(), 7);
  (void)driver_.Unmap(base_, kPageBytes * 2);
  EXPECT_THAT(driver_.misuses(), ElementsAre(HasSubstr("may still use")));
}

TEST_F(FakeDriverTest, Unmap_RanButHostDoesNotKnow_IsMisuse) {
  driver_.ExpectMisuse();
  WritePattern(driver_, kStreamA, Range(), 7);
  driver_.StreamWaitsFor(kStreamB, kStreamA);
  Event event = *driver_.CreateEvent();
  ASSERT_TRUE(driver_.RecordEvent(event, kStreamB).ok());
  ASSERT_TRUE(driver_.SynchronizeEvent(event).ok());  // knows of A through B
  WritePattern(driver_, kStreamB, DeviceRange{base_, kPageBytes}, 8);
  EXPECT_TRUE(driver_.Unmap(base_ + kPageBytes, kPageBytes).ok());
  EXPECT_THAT(driver_.misuses(), IsEmpty());
  (void)driver_.Unmap(base_, kPageBytes);
  EXPECT_THAT(driver_.misuses(), ElementsAre(HasSubstr("may still use")));
}

TEST_F(FakeDriverTest, Mapping_BrokenRules_AreMisuse) {
  driver_.ExpectMisuse();
  EXPECT_FALSE(driver_.Unmap(base_, kPageBytes / 2).ok());
  EXPECT_FALSE(driver_.Unmap(base_ + kPageBytes * 2, kPageBytes).ok());
  EXPECT_FALSE(driver_.Map(base_ + kPageBytes * 2, kPageBytes, frames_[0]).ok());
  FrameHandle third = *driver_.CreateFrame(kDevice, kPageBytes);
  EXPECT_FALSE(driver_.Map(base_, kPageBytes, third).ok());
  EXPECT_FALSE(driver_.Map(base_ + kPageBytes * 8, kPageBytes, third).ok());
  EXPECT_FALSE(driver_.ReleaseFrame(frames_[0]).ok());
  EXPECT_FALSE(driver_.SetAccess({kDevice}, base_, kPageBytes * 3).ok());
  EXPECT_EQ(driver_.misuses().size(), 7u);
  EXPECT_TRUE(driver_.Unmap(base_, kPageBytes * 2).ok());
  EXPECT_TRUE(driver_.ReleaseFrame(frames_[0]).ok());
}

TEST_F(FakeDriverTest, Kernel_UnmappedRange_IsMisuse) {
  driver_.ExpectMisuse();
  WritePattern(driver_, kStreamA, DeviceRange{base_ + kPageBytes, kPageBytes * 2}, 1);
  EXPECT_THAT(driver_.misuses(), ElementsAre(HasSubstr("unmapped")));
}

TEST_F(FakeDriverTest, Event_Destroyed_IsMisuse) {
  driver_.ExpectMisuse();
  Event event = *driver_.CreateEvent();
  ASSERT_TRUE(driver_.DestroyEvent(event).ok());
  EXPECT_FALSE(driver_.RecordEvent(event, kStreamA).ok());
  EXPECT_EQ(driver_.misuses().size(), 1u);
}

TEST_F(FakeDriverTest, CreateFrame_BeyondPhysicalMemory_IsRefusedWithoutMisuse) {
  FakeDriver small(FakeDriver::Config{.physical = kPageBytes * 2});
  EXPECT_TRUE(small.CreateFrame(kDevice, kPageBytes).ok());
  EXPECT_TRUE(small.CreateFrame(kDevice, kPageBytes).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(small.CreateFrame(kDevice, kPageBytes).status()));
  EXPECT_THAT(small.misuses(), IsEmpty());
}

TEST_F(FakeDriverTest, Fault_NthOfItsKind_FailsOnceAndHasNoEffect) {
  driver_.PlanFault(
      Fault{.call = Call::kCreateFrame, .nth = 2, .status = absl::ResourceExhaustedError("planned")});
  EXPECT_TRUE(driver_.CreateFrame(kDevice, kPageBytes).ok());
  Bytes held = driver_.frames();
  EXPECT_TRUE(absl::IsResourceExhausted(driver_.CreateFrame(kDevice, kPageBytes).status()));
  EXPECT_EQ(driver_.frames(), held);
  EXPECT_TRUE(driver_.CreateFrame(kDevice, kPageBytes).ok());
  EXPECT_EQ(driver_.faults(), 1u);
}

TEST_F(FakeDriverTest, Fault_ForGood_FailsAllLaterCalls) {
  driver_.PlanFault(Fault{.call = std::nullopt, .nth = 2, .for_good = true});
  EXPECT_TRUE(driver_.MemoryInfo(kDevice).ok());
  EXPECT_FALSE(driver_.MemoryInfo(kDevice).ok());
  EXPECT_FALSE(driver_.CreateFrame(kDevice, kPageBytes).ok());
  driver_.ClearFault();
  EXPECT_TRUE(driver_.MemoryInfo(kDevice).ok());
}

TEST(FakeDriverContextTest, Copy_WithoutContext_IsMisuse) {
  FakeDriver driver;
  driver.ExpectMisuse();
  EXPECT_FALSE(driver.CreateEvent().ok());
  EXPECT_THAT(driver.misuses(), ElementsAre(HasSubstr("without a current context")));
}

TEST(FakeDriverSeedTest, Device_WithSeed_WorksWhileTheHostCalls) {
  FakeDriver driver(FakeDriver::Config{.seed = 1});
  ScopedContext context(driver, kDevice);
  DeviceAddr base = *driver.ReserveAddresses(kPageBytes);
  ASSERT_TRUE(driver.Map(base, kPageBytes, *driver.CreateFrame(kDevice, kPageBytes)).ok());
  ASSERT_TRUE(driver.SetAccess({kDevice}, base, kPageBytes).ok());
  WritePattern(driver, kStreamA, DeviceRange{base, kPageBytes}, 3);
  Event event = *driver.CreateEvent();
  ASSERT_TRUE(driver.RecordEvent(event, kStreamA).ok());
  int queries = 0;
  while (!*driver.QueryEvent(event)) ASSERT_LT(++queries, 1000);
  EXPECT_EQ(driver.queued(), 0u);
}

}  // namespace
}  // namespace weir::fakes
