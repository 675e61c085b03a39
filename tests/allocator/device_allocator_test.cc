// Allocation: alignment, kinds, reuse, caches, limits.
#include "allocator/device_allocator.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/allocator/device_fixture.h"

namespace weir {
namespace {

using fakes::Call;
using fakes::Fault;

class DeviceAllocatorTest : public ::testing::Test {
 protected:
  explicit DeviceAllocatorTest(PageCount cap = PageCount(16)) : fixture_(cap) {}

  DeviceFixture fixture_;
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
};

TEST_F(DeviceAllocatorTest, Allocate_AnySize_IsAlignedTo512AndUsable) {
  for (Bytes size :
       {Bytes(1), Bytes(513), KiB(700), kMedium, kMedium + Bytes(1), kLarge, kLarge + Bytes(1)}) {
    DeviceAddr at = fixture_.Allocate(size);
    EXPECT_EQ(at.value() % 512, 0u) << size.count();
    fixture_.Write(at, size, 1);
    fixture_.Check(at, size, 1);
  }
}

TEST_F(DeviceAllocatorTest, Allocate_AfterFreeOnTheSameStream_MakesNoDriverCall) {
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    fixture_.Free(fixture_.Allocate(size));
    uint64_t calls = driver_.calls();
    fixture_.Free(fixture_.Allocate(size));
    EXPECT_EQ(driver_.calls(), calls) << size.count();
  }
}

TEST_F(DeviceAllocatorTest, Allocate_LargeOfTheSameSize_GetsTheSamePages) {
  const Bytes size = kPageBytes * 3;
  DeviceAddr first = fixture_.Allocate(size);
  fixture_.Free(first);
  EXPECT_EQ(fixture_.Allocate(size - Bytes(5)), first);
  auto block = device_.FindBlock(first);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(block->requested, size - Bytes(5));
}

TEST_F(DeviceAllocatorTest, Allocate_LargerThanAnyFreedBlock_UsesTheirPagesTogether) {
  DeviceAddr first = fixture_.Allocate(kLarge), second = fixture_.Allocate(kLarge);
  fixture_.Free(first);
  fixture_.Free(second);
  Bytes held = driver_.frames();
  DeviceAddr both = fixture_.Allocate(kLarge * 2);
  EXPECT_EQ(both, std::min(first, second));
  EXPECT_EQ(driver_.frames(), held);
}

TEST_F(DeviceAllocatorTest, Allocate_OtherStream_DoesNotGetPagesOfTheFirst) {
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    DeviceAddr first = fixture_.Allocate(size, kStreamA);
    fixture_.Write(first, size, 1, kStreamA);
    fixture_.Free(first);
    DeviceAddr second = fixture_.Allocate(size, kStreamB);
    EXPECT_NE(first, second);
    fixture_.Write(second, size, 2, kStreamB);  // the fake reports it if nothing orders the two
  }
}

TEST_F(DeviceAllocatorTest, Allocate_MediumBlocks_ShareAnExtent) {
  DeviceAddr first = fixture_.Allocate(kMedium), second = fixture_.Allocate(kMedium);
  EXPECT_EQ(second, first + kMedium);
  EXPECT_EQ(driver_.frames(), Layout::For(device_.cap()).medium_pages.bytes());
}

TEST_F(DeviceAllocatorTest, Allocate_BeyondTheCap_IsRefusedAndChangesNothing) {
  DeviceAddr all = fixture_.Allocate(kPageBytes * 16);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(Bytes(1), kStreamA, fixture_.no_op).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(kLarge, kStreamA, fixture_.no_op).status()));
  EXPECT_TRUE(device_.IsValid());
  EXPECT_EQ(device_.Counters().blocks[kAllPools].current, 1);
  fixture_.Free(all);
  fixture_.Allocate(kPageBytes * 16);
}

TEST_F(DeviceAllocatorTest, Allocate_NoRoomForASharedExtent_MediumBlockGetsItsOwn) {
  fixture_.Allocate(kPageBytes * 15);
  ASSERT_GT(Layout::For(device_.cap()).medium_pages, PageCount(1));
  DeviceAddr at = fixture_.Allocate(kMedium);
  fixture_.Write(at, kMedium, 1);
  EXPECT_EQ(device_.Counters().out_of_memory, 0);
}

TEST_F(DeviceAllocatorTest, Allocate_DriverRefusesFrames_IsRefusedUntilEmptyCache) {
  fixture_.Allocate(kLarge);
  driver_.PlanFault(
      Fault{.call = Call::kCreateFrame, .status = absl::ResourceExhaustedError("others took it")});
  EXPECT_TRUE(absl::IsResourceExhausted(device_.Allocate(kLarge, kStreamA, fixture_.no_op).status()));
  device_.EmptyCache();
  fixture_.Allocate(kLarge);
}

TEST_F(DeviceAllocatorTest, EmptyCache_NothingInUse_GivesEveryFrameBack) {
  std::vector<DeviceAddr> blocks;
  for (Bytes size : {kSmall, kMedium, kLarge, kLarge * 2}) {
    blocks.push_back(fixture_.Allocate(size));
    fixture_.Write(blocks.back(), size, 1);
  }
  for (DeviceAddr at : blocks) fixture_.Free(at);
  device_.EmptyCache();
  EXPECT_EQ(driver_.frames(), Bytes());
  EXPECT_EQ(device_.frames().held(), PageCount());
  fixture_.Allocate(kPageBytes * 16);
}

TEST_F(DeviceAllocatorTest, EmptyCache_BlocksInUse_KeepsThem) {
  DeviceAddr keep = fixture_.Allocate(kLarge);
  fixture_.Write(keep, kLarge, 9);
  fixture_.Free(fixture_.Allocate(kLarge * 2));
  device_.EmptyCache();
  EXPECT_EQ(driver_.frames(), kLarge);
  fixture_.Check(keep, kLarge, 9);
}

TEST_F(DeviceAllocatorTest, Harvest_PartOfTheFreePages_TakesTheOldestAndWaitsForTheirUses) {
  DeviceAddr old = fixture_.Allocate(kLarge), wall = fixture_.Allocate(kLarge),
             young = fixture_.Allocate(kLarge);
  fixture_.Write(old, kLarge, 1);
  fixture_.Write(young, kLarge, 2);
  fixture_.Free(old);
  DeviceAddr other = fixture_.Allocate(kLarge * 2);  // takes nothing of it
  fixture_.Free(young);
  ScopedContext context(driver_, kDevice);
  EXPECT_EQ(*device_.Harvest(PageCount(2)), PageCount(2));
  EXPECT_FALSE(driver_.Mapped(old));
  EXPECT_TRUE(driver_.Mapped(young));
  EXPECT_EQ(device_.frames().pooled(), PageCount(2));
  fixture_.Free(wall);
  fixture_.Free(other);
}

TEST_F(DeviceAllocatorTest, Harvest_UnmapFails_KeepsThePagesMappedAndUsable) {
  DeviceAddr at = fixture_.Allocate(kLarge);
  fixture_.Free(at);
  ScopedContext context(driver_, kDevice);
  driver_.PlanFault(Fault{.call = Call::kUnmap});
  EXPECT_FALSE(device_.Harvest(PageCount(2)).ok());
  EXPECT_TRUE(device_.IsValid());
  EXPECT_EQ(fixture_.Allocate(kLarge), at);
  fixture_.Write(at, kLarge, 1);
}

class IdleFramesTest : public DeviceAllocatorTest {
 protected:
  IdleFramesTest() : DeviceAllocatorTest(PageCount(512)) {}
};

TEST_F(IdleFramesTest, Allocate_FreePagesLieScattered_TheirFramesServe) {
  const Bytes piece = kPageBytes * 4;
  std::vector<DeviceAddr> blocks;
  for (uint32_t i = 0; i < 40; ++i) {
    blocks.push_back(fixture_.Allocate(piece));
    fixture_.Write(blocks.back(), piece, i);
  }
  const Bytes held = driver_.frames();
  for (size_t i = 0; i < 40; i += 2) fixture_.Free(blocks[i]);
  const Bytes size = kPageBytes * 40;
  DeviceAddr at = fixture_.Allocate(size);
  EXPECT_EQ(driver_.frames(), held);
  fixture_.Write(at, size, 200);
  for (size_t i = 1; i < 40; i += 2) fixture_.Check(blocks[i], piece, static_cast<uint32_t>(i));
  fixture_.Check(at, size, 200);
}

TEST_F(IdleFramesTest, Allocate_StepsThatWouldMoveTheSameFramesForEver_StopMoving) {
  const PageCount pages(100);
  auto step = [&] {
    for (Stream stream : {kStreamA, kStreamB}) {
      DeviceAddr at = fixture_.Allocate(pages.bytes(), stream);
      fixture_.Write(at, pages.bytes(), 1, stream);
      fixture_.Free(at);
    }
  };
  step();
  step();
  EXPECT_EQ(driver_.frames(), pages.bytes());  // moved to and fro
  for (int i = 0; i < 10; ++i) step();
  const uint64_t calls = driver_.calls();
  step();
  EXPECT_EQ(driver_.calls(), calls);
  EXPECT_EQ(driver_.frames(), pages.bytes() * 2);
}

TEST_F(IdleFramesTest, Allocate_UnmapFails_TakesNewFrames) {
  const PageCount pages(100);
  fixture_.Free(fixture_.Allocate(pages.bytes()));
  driver_.PlanFault(Fault{.call = Call::kUnmap});
  DeviceAddr at = fixture_.Allocate(pages.bytes(), kStreamB);
  EXPECT_EQ(driver_.faults(), 1u);
  EXPECT_EQ(driver_.frames(), pages.bytes() * 2);
  fixture_.Write(at, pages.bytes(), 1, kStreamB);
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(DeviceAllocatorTest, WaitUntilPassed_DestroyedStream_WaitsForAll) {
  DeviceAddr at = fixture_.Allocate(kLarge, kStreamB);
  fixture_.Write(at, kLarge, 1, kStreamB);
  fixture_.Free(at);
  driver_.DestroyStream(kStreamB);
  device_.EmptyCache();  // the fake reports an unmap in flight
  EXPECT_EQ(driver_.frames(), Bytes());
}

TEST_F(DeviceAllocatorTest, FindBlock_InteriorAndForeignAddresses_AreTold) {
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    DeviceAddr at = fixture_.Allocate(size);
    auto block = device_.FindBlock(at + size - Bytes(1));
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(block->base, at);
    EXPECT_EQ(block->requested, size);
    EXPECT_TRUE(device_.Contains(at));
    fixture_.Free(at);
    EXPECT_FALSE(device_.FindBlock(at).has_value());
  }
  EXPECT_FALSE(device_.FindBlock(DeviceAddr(4096)).has_value());
  EXPECT_FALSE(device_.Contains(DeviceAddr(4096)));
  device_.RecordStream(DeviceAddr(4096), kStreamB);  // nothing happens
}

// As torch's own allocator counts: by what was asked for, up to 1 MiB.
TEST_F(DeviceAllocatorTest, Counters_SmallPool_IsUpToOneMebibyte) {
  fixture_.Allocate(MiB(1));
  EXPECT_EQ(device_.Counters().blocks[kSmallPool].current, 1);
  fixture_.Allocate(MiB(1) + Bytes(1));
  EXPECT_EQ(device_.Counters().blocks[kSmallPool].current, 1);
  EXPECT_EQ(device_.Counters().blocks[kLargePool].current, 1);
}

TEST_F(DeviceAllocatorTest, Counters_AllocateAndFree_AddUp) {
  DeviceAddr small = fixture_.Allocate(Bytes(100)), large = fixture_.Allocate(kLarge + Bytes(1));
  DeviceCounters now = device_.Counters();
  EXPECT_EQ(now.blocks[kAllPools].current, 2);
  EXPECT_EQ(now.bytes[kSmallPool].current, 512);
  EXPECT_EQ(now.requested[kSmallPool].current, 100);
  EXPECT_EQ(now.bytes[kLargePool].current, static_cast<int64_t>((kPageBytes * 3).count()));
  EXPECT_EQ(now.requested[kAllPools].current, static_cast<int64_t>(kLarge.count() + 101));
  EXPECT_EQ(now.reserved[kAllPools].current, static_cast<int64_t>((kPageBytes * 4).count()));
  EXPECT_EQ(device_.Floor(), kPageBytes);
  fixture_.Free(small);
  fixture_.Free(large);
  now = device_.Counters();
  EXPECT_EQ(now.requested[kAllPools].current, 0);
  EXPECT_EQ(now.requested[kAllPools].peak, static_cast<int64_t>(kLarge.count() + 101));
  EXPECT_EQ(now.requested[kAllPools].freed(), now.requested[kAllPools].allocated);
}

TEST_F(DeviceAllocatorTest, FreeWithoutEvicting_NoBlocks_IsTheCap) {
  EXPECT_EQ(device_.FreeWithoutEvicting(), kPageBytes * 16);
  fixture_.Free(fixture_.Allocate(kLarge));
  EXPECT_EQ(device_.FreeWithoutEvicting(), kPageBytes * 16);
  fixture_.Allocate(kLarge);
  EXPECT_EQ(device_.FreeWithoutEvicting(), kPageBytes * 14);
}

TEST_F(DeviceAllocatorTest, SteadyDriverCalls_LoopOfTheSameSizes_AreZero) {
  for (int i = 0; i < 64; ++i) {
    DeviceAddr a = fixture_.Allocate(kSmall), b = fixture_.Allocate(kMedium), c = fixture_.Allocate(kLarge);
    fixture_.Free(b);
    fixture_.Free(a);
    fixture_.Free(c);
  }
  EXPECT_EQ(device_.SteadyDriverCalls(), 0u);
}

TEST_F(DeviceAllocatorTest, AllocateAndFree_TwoThreadsOnTwoStreams_StayApart) {
  auto work = [&](Stream stream, uint32_t pattern) {
    OpPins op;
    std::vector<std::pair<DeviceAddr, Bytes>> blocks;
    for (int i = 0; i < 400; ++i) {
      Bytes size = i % 7 == 0 ? kMedium : kSmall * (1 + i % 5);
      absl::StatusOr<DeviceAddr> at = device_.Allocate(size, stream, op);
      ASSERT_TRUE(at.ok());
      fixture_.Write(*at, size, pattern, stream);
      blocks.emplace_back(*at, size);
      if (blocks.size() > 4) {
        auto [oldest, bytes] = blocks.front();
        fixture_.Check(oldest, bytes, pattern, stream);
        ASSERT_TRUE(device_.Free(oldest));
        blocks.erase(blocks.begin());
      }
    }
    for (auto [at, size] : blocks) device_.Free(at);
  };
  std::thread other(work, kStreamB, 2);
  work(kStreamA, 1);
  other.join();
  EXPECT_EQ(device_.Counters().blocks[kAllPools].current, 0);
}

TEST(DeviceExtensionTest, Allocate_LargerThanAFreedBlock_MapsOnlyWhatIsMissing) {
  fakes::FakeDriver driver;
  constexpr PageCount kCap(1024);
  driver.SetFrameLimit(kCap.bytes());
  auto device = *DeviceAllocator::Create(driver, {kDevice, kCap.bytes(), kPageBytes * 16384});
  OpPins no_op;
  const Bytes first = kPageBytes * 128, second = first + kPageBytes * 3;
  DeviceAddr at = *device->Allocate(first, kStreamA, no_op);
  ASSERT_TRUE(device->Free(at));
  EXPECT_EQ(*device->Allocate(second, kStreamA, no_op), at);
  EXPECT_EQ(device->frames().held(), PageCount::ToHold(second));
  fakes::WritePattern(driver, kStreamA, {at, second}, 17);
  fakes::CheckPattern(driver, kStreamA, {at, second}, 17, "extended");
  EXPECT_TRUE(device->IsValid());
  driver.FinishEverything();
}

}  // namespace
}  // namespace weir
