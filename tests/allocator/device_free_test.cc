// Freeing: unknown pointers, recorded streams, deferred frees.
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "allocator/device_allocator.h"
#include "tests/allocator/device_fixture.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::Fault;

class DeviceFreeTest : public ::testing::Test {
 protected:
  // A block of stream A that stream B uses, ordered after A's write, and is known to use.
  DeviceAddr UsedOnBoth(Bytes size) {
    DeviceAddr at = fixture_.Allocate(size, kStreamA);
    fixture_.Write(at, size, 1, kStreamA);
    driver_.StreamWaitsFor(kStreamB, kStreamA);
    fixture_.Check(at, size, 1, kStreamB, "the use on B");
    device_.RecordStream(at, kStreamB);
    return at;
  }

  DeviceFixture fixture_{PageCount(16)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
};

TEST_F(DeviceFreeTest, Free_NotTheBaseOfALiveBlock_IsRefused) {
  EXPECT_FALSE(device_.Free(DeviceAddr(4096)));
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    DeviceAddr at = fixture_.Allocate(size);
    EXPECT_FALSE(device_.Free(at + Bytes(512)));
    fixture_.Free(at);
    EXPECT_FALSE(device_.Free(at)) << "freed twice";
  }
}

TEST_F(DeviceFreeTest, Free_RecordedOnAnotherStream_IsNotReusedBeforeThatStreamHasPassed) {
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    DeviceAddr at = UsedOnBoth(size);
    fixture_.Free(at);
    DeviceAddr next = fixture_.Allocate(size, kStreamA);
    EXPECT_NE(next, at);
    fixture_.Write(next, size, 2, kStreamA);
    driver_.FinishEverything();
    EXPECT_TRUE(device_.FinishFrees(/*wait=*/false));
    EXPECT_EQ(fixture_.Allocate(size, kStreamA), at);
    fixture_.Write(at, size, 3, kStreamA);
  }
}

TEST_F(DeviceFreeTest, Free_RecordedTwiceBeforeItIsPassed_IsRefusedTheSecondTime) {
  DeviceAddr at = UsedOnBoth(kLarge);
  fixture_.Free(at);
  EXPECT_FALSE(device_.Free(at));
  driver_.FinishEverything();
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/false));
  EXPECT_EQ(device_.Counters().blocks[kAllPools].current, 0);
}

// C38
TEST_F(DeviceFreeTest, RecordStream_InteriorAddress_CountsForTheBlock) {
  DeviceAddr at = fixture_.Allocate(kLarge, kStreamA);
  device_.RecordStream(at + kMedium, kStreamB);
  fixture_.Free(at);
  EXPECT_NE(fixture_.Allocate(kLarge, kStreamA), at);
}

TEST_F(DeviceFreeTest, RecordStream_OwnStream_DefersNothing) {
  DeviceAddr at = fixture_.Allocate(kLarge, kStreamA);
  device_.RecordStream(at, kStreamA);
  fixture_.Free(at);
  EXPECT_EQ(fixture_.Allocate(kLarge, kStreamA), at);
}

TEST_F(DeviceFreeTest, FinishFrees_NotPassed_DoesNothingUnlessItMayWait) {
  DeviceAddr at = UsedOnBoth(kLarge);
  fixture_.Free(at);
  DeviceCounters waiting = device_.Counters();
  EXPECT_EQ(waiting.bytes[kAllPools].current, 0);
  EXPECT_EQ(waiting.blocks[kLargePool].current, 0);
  EXPECT_EQ(waiting.active[kLargePool].current, 1);
  EXPECT_EQ(waiting.active_bytes[kAllPools].current, static_cast<int64_t>(kLarge.count()));
  EXPECT_EQ(waiting.requested[kAllPools].current, static_cast<int64_t>(kLarge.count()));
  EXPECT_FALSE(device_.FinishFrees(/*wait=*/false));
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/true));
  EXPECT_EQ(device_.Counters().active_bytes[kAllPools].current, 0);
  EXPECT_EQ(device_.Counters().requested[kAllPools].current, 0);
  EXPECT_FALSE(device_.FinishFrees(/*wait=*/true));
}

TEST_F(DeviceFreeTest, FinishFrees_TwoStreams_WaitsForBoth) {
  DeviceAddr at = UsedOnBoth(kLarge);
  driver_.StreamWaitsFor(kStreamC, kStreamA);
  fixture_.Check(at, kLarge, 1, kStreamC, "the use on C");
  device_.RecordStream(at, kStreamC);
  fixture_.Free(at);
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/true));
  EXPECT_EQ(fixture_.Allocate(kLarge, kStreamA), at);
  fixture_.Write(at, kLarge, 2, kStreamA);
}

TEST_F(DeviceFreeTest, FinishFrees_QueryFailsOnce_DoesNotTakeItForPassed) {
  DeviceAddr at = UsedOnBoth(kLarge);
  fixture_.Free(at);
  driver_.PlanFault(Fault{.call = Call::kQueryEvent});
  EXPECT_FALSE(device_.FinishFrees(/*wait=*/false));
  EXPECT_EQ(driver_.faults(), 1u);
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/true));
}

TEST_F(DeviceFreeTest, FinishFrees_QueryFailsForGood_StillEnds) {
  fixture_.Free(UsedOnBoth(kLarge));
  driver_.PlanFault(Fault{.call = Call::kQueryEvent, .for_good = true});
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/true));  // the wait itself tells
}

// C43
TEST_F(DeviceFreeTest, Free_RecordedStreamWasDestroyed_WaitsForItsWork) {
  DeviceAddr at = UsedOnBoth(kLarge);
  driver_.DestroyStream(kStreamB);
  fixture_.Free(at);
  EXPECT_EQ(fixture_.Allocate(kLarge, kStreamA), at);
  fixture_.Write(at, kLarge, 2, kStreamA);
}

TEST_F(DeviceFreeTest, Free_RecordedStreamWasDestroyed_HoldsNoLockWhileItWaits) {
  DeviceAddr at = UsedOnBoth(kLarge);
  DeviceAddr other = fixture_.Allocate(kSmall, kStreamA);
  driver_.DestroyStream(kStreamB);
  std::future<bool> found;
  driver_.SetWaitHook([&] {
    found = std::async(std::launch::async, [&] { return device_.FindBlock(other).has_value(); });
    EXPECT_EQ(found.wait_for(std::chrono::seconds(5)), std::future_status::ready) << "the device is locked";
  });
  fixture_.Free(at);
  driver_.SetWaitHook(nullptr);
}

TEST_F(DeviceFreeTest, Allocate_FreedBlockHasPassed_IsReusedBeforeNewFramesAreTaken) {
  for (int step = 0; step < 5; ++step) {
    DeviceAddr at = UsedOnBoth(kLarge);
    fixture_.Free(at);
    driver_.FinishEverything();
  }
  EXPECT_EQ(driver_.peak_frames(), kLarge);
}

// C37
TEST_F(DeviceFreeTest, Allocate_OnlyDeferredFreesAreLeft_GetsThemWhenPassed) {
  DeviceAddr at = UsedOnBoth(kPageBytes * 16);
  fixture_.Free(at);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(kLarge, kStreamA, fixture_.no_op).status()));
  driver_.FinishEverything();
  fixture_.Allocate(kLarge);
}

TEST_F(DeviceFreeTest, LifeOf_Block_EndsWithItsFree) {
  using Life = DeviceAllocator::Life;
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    DeviceAddr at = fixture_.Allocate(size);
    EXPECT_EQ(device_.LifeOf(at, Bytes()), Life::kAlive);
    EXPECT_EQ(device_.LifeOf(at + Bytes(3), size - Bytes(3)), Life::kAlive);
    EXPECT_EQ(device_.LifeOf(at + size, Bytes()), Life::kEnd);
    EXPECT_EQ(device_.LifeOf(at + size, Bytes(1)), Life::kDead);
    EXPECT_EQ(device_.LifeOf(at, size + Bytes(1)), Life::kDead);
    fixture_.Free(at);
    EXPECT_EQ(device_.LifeOf(at, Bytes()), Life::kDead) << size.count();
    EXPECT_EQ(device_.LifeOf(at + size, Bytes()), Life::kDead);
  }
}

TEST_F(DeviceFreeTest, LifeOf_BlockThatWasRoundedUp_HasNoEndAndLivesToItsLastByte) {
  using Life = DeviceAllocator::Life;
  DeviceAddr at = fixture_.Allocate(Bytes(700));
  EXPECT_EQ(device_.LifeOf(at, Bytes(1024)), Life::kAlive);
  EXPECT_EQ(device_.LifeOf(at + Bytes(1024), Bytes()), Life::kDead);
}

TEST_F(DeviceFreeTest, LifeOf_DeferredFree_EndsAtOnce) {
  DeviceAddr at = UsedOnBoth(kLarge);
  EXPECT_EQ(device_.LifeOf(at, kLarge), DeviceAllocator::Life::kAlive);
  fixture_.Free(at);
  EXPECT_EQ(device_.LifeOf(at, kLarge), DeviceAllocator::Life::kDead);
}

TEST_F(DeviceFreeTest, EmptyCache_DeferredFreeNotPassed_StaysMapped) {
  DeviceAddr at = UsedOnBoth(kLarge);
  fixture_.Free(at);
  device_.EmptyCache();
  EXPECT_TRUE(driver_.Mapped(at));
  driver_.FinishEverything();
  device_.EmptyCache();
  EXPECT_FALSE(driver_.Mapped(at));
}

// C47
TEST_F(DeviceFreeTest, Free_StorageKnown_IsReleasedWithNoLockHeld) {
  static int released;
  static DeviceAllocator* device;
  released = 0;
  device = &device_;
  device_.SetStorageRelease([](void* storage) {
    EXPECT_EQ(storage, &released);
    EXPECT_FALSE(device->FindBlock(DeviceAddr(4096)).has_value());  // takes the lock
    ++released;
  });
  for (bool deferred : {false, true}) {
    DeviceAddr at = deferred ? UsedOnBoth(kLarge) : fixture_.Allocate(kMedium);
    {
      LockHolder lock(&device_.mutex());
      device_.FindBlockLocked(at)->storage = &released;
    }
    fixture_.Free(at);
    if (deferred) device_.FinishFrees(/*wait=*/true);
  }
  EXPECT_EQ(released, 2);
}

}  // namespace
}  // namespace weir
