// Pools: whose memory goes where, while they live and after their end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/device_allocator.h"
#include "tests/allocator/device_fixture.h"

namespace weir {
namespace {

class PoolsTest : public ::testing::Test {
 protected:
  DeviceAddr AllocateIn(PoolId pool, Bytes size, Stream stream = kStreamA) {
    absl::StatusOr<DeviceAddr> at = device_.Allocate(size, Lane(stream, pool), fixture_.no_op);
    EXPECT_TRUE(at.ok()) << at.status();
    return at.ok() ? *at : DeviceAddr();
  }

  DeviceFixture fixture_{PageCount(32)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
};

TEST_F(PoolsTest, Free_InAPool_IsReusedByThatPoolAlone) {
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    const PoolId pool = device_.MakePool(), other = device_.MakePool();
    const DeviceAddr at = AllocateIn(pool, size);
    EXPECT_EQ(device_.PoolOf(at), pool);
    fixture_.Free(at);
    const DeviceAddr outside = fixture_.Allocate(size), elsewhere = AllocateIn(other, size);
    EXPECT_NE(outside, at);
    EXPECT_NE(elsewhere, at);
    EXPECT_EQ(device_.PoolOf(outside), PoolId());
    EXPECT_EQ(device_.PoolOf(elsewhere), other);
    EXPECT_EQ(AllocateIn(pool, size), at);
    EXPECT_TRUE(device_.IsValid());
    for (DeviceAddr each : {at, outside, elsewhere}) fixture_.Free(each);
    device_.EndPool(pool);
    device_.EndPool(other);
  }
}

TEST_F(PoolsTest, Free_NeighboursOfTwoPools_AreNotMerged) {
  const PoolId pool = device_.MakePool();
  const DeviceAddr first = AllocateIn(pool, kLarge), second = fixture_.Allocate(kLarge);
  ASSERT_EQ(first + kLarge, second) << "the fake driver's addresses are used in order";
  fixture_.Free(first);
  fixture_.Free(second);
  EXPECT_NE(AllocateIn(pool, kLarge * 2), first);
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PoolsTest, EndPool_BlocksAlive_StayValidAndTheirMemoryIsTheGeneralHeaps) {
  const PoolId pool = device_.MakePool();
  std::vector<DeviceAddr> alive, freed;
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    alive.push_back(AllocateIn(pool, size));
    fixture_.Write(alive.back(), size, 7);
  }
  device_.EndPool(pool);
  EXPECT_TRUE(device_.IsValid());
  size_t i = 0;
  for (Bytes size : {kSmall, kMedium, kLarge}) {
    fixture_.Check(alive[i], size, 7);
    EXPECT_EQ(device_.PoolOf(alive[i]), PoolId());
    fixture_.Free(alive[i]);
    EXPECT_EQ(fixture_.Allocate(size), alive[i]) << size.count();
    ++i;
  }
}

TEST_F(PoolsTest, EndPool_HolesBesideALiveBlock_ServeTheGeneralHeap) {
  const PoolId pool = device_.MakePool();
  const DeviceAddr alive = AllocateIn(pool, kSmall), hole = AllocateIn(pool, kSmall);
  fixture_.Free(hole);
  device_.EndPool(pool);
  EXPECT_EQ(fixture_.Allocate(kSmall), hole);
  fixture_.Free(alive);
}

TEST_F(PoolsTest, Allocate_PoolHasEnded_ComesFromTheGeneralHeap) {
  const PoolId pool = device_.MakePool();
  device_.EndPool(pool);
  for (Bytes size : {kSmall, kMedium, kLarge}) EXPECT_EQ(device_.PoolOf(AllocateIn(pool, size)), PoolId());
  device_.EndPool(pool);  // again: nothing
}

TEST_F(PoolsTest, EndPool_FreeWaitsForARecordedStream_ComesBackToTheGeneralHeap) {
  const PoolId pool = device_.MakePool();
  const DeviceAddr at = AllocateIn(pool, kLarge);
  fixture_.Write(at, kLarge, 1);
  driver_.StreamWaitsFor(kStreamB, kStreamA);
  fixture_.Check(at, kLarge, 1, kStreamB);
  device_.RecordStream(at, kStreamB);
  fixture_.Free(at);
  device_.EndPool(pool);
  EXPECT_NE(fixture_.Allocate(kLarge), at);
  driver_.FinishEverything();
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/false));
  EXPECT_EQ(fixture_.Allocate(kLarge), at);
}

TEST_F(PoolsTest, PoolsMadeAndEnded_ManyTimes_HoldNoMoreAndCallTheDriverOnlyAtFirst) {
  auto round = [&] {
    const PoolId pool = device_.MakePool();
    std::vector<DeviceAddr> blocks;
    for (Bytes size : {kSmall, kMedium, kLarge, kLarge}) blocks.push_back(AllocateIn(pool, size));
    for (DeviceAddr at : blocks) fixture_.Free(at);
    device_.EndPool(pool);
  };
  round();
  const PageCount held = device_.frames().held();
  const uint64_t calls = driver_.calls();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(device_.frames().held(), held);
  EXPECT_EQ(driver_.calls(), calls);
  EXPECT_EQ(device_.Counters().blocks[kAllPools].current, 0);
}

TEST_F(PoolsTest, IdleMemoryOfAPool_NeededElsewhere_GivesItsFrames) {
  const PoolId pool = device_.MakePool();
  fixture_.Free(AllocateIn(pool, kPageBytes * 32));
  EXPECT_FALSE(device_.Allocate(kLarge, kStreamA, fixture_.no_op).ok()) << "no pager: nobody makes room";
  ScopedContext context(driver_, kDevice);
  ASSERT_TRUE(device_.Harvest(PageCount(2)).ok());
  fixture_.Allocate(kLarge);
}

TEST_F(PoolsTest, KeepBlocksApart_SmallBlocks_HaveAnExtentEach) {
  const PoolId pool = device_.MakePool();
  device_.KeepBlocksApart(pool);
  const DeviceAddr first = AllocateIn(pool, kSmall), second = AllocateIn(pool, kSmall);
  LockHolder lock(&device_.mutex());
  EXPECT_NE(device_.FindBlockLocked(first)->extent, device_.FindBlockLocked(second)->extent);
}

TEST_F(PoolsTest, TakeOutside_NoRoom_IsRefusedAndChangesNothing) {
  fixture_.Allocate(kPageBytes * 30);
  EXPECT_TRUE(absl::IsResourceExhausted(device_.TakeOutside(kPageBytes * 3, kStreamA, fixture_.no_op)));
  EXPECT_EQ(device_.frames().counted(), PageCount(30));
  EXPECT_TRUE(device_.TakeOutside(kPageBytes * 2, kStreamA, fixture_.no_op).ok());
  EXPECT_EQ(device_.frames().counted(), PageCount(32));
  EXPECT_TRUE(device_.IsValid());
  device_.GiveOutside(kPageBytes * 2);
}

TEST_F(PoolsTest, OutsideBlocks_AreCountedLikeOwnOnes) {
  ASSERT_TRUE(device_.TakeOutside(kLarge, kStreamA, fixture_.no_op).ok());
  device_.CountOutsideBlock(kLarge, kLarge - Bytes(100), true);
  DeviceCounters counters = device_.Counters();
  EXPECT_EQ(counters.blocks[kLargePool].current, 1);
  EXPECT_EQ(counters.bytes[kAllPools].current, static_cast<int64_t>(kLarge.count()));
  EXPECT_EQ(counters.requested[kAllPools].current, static_cast<int64_t>(kLarge.count()) - 100);
  EXPECT_EQ(counters.reserved[kLargePool].current, static_cast<int64_t>(kLarge.count()));
  device_.CountOutsideBlock(kLarge, kLarge - Bytes(100), false);
  device_.GiveOutside(kLarge);
  counters = device_.Counters();
  EXPECT_EQ(counters.requested[kAllPools].current, 0);
  EXPECT_EQ(counters.reserved[kAllPools].current, 0);
}

}  // namespace
}  // namespace weir
