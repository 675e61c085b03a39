// What a device tells of itself: its segments and blocks at one instant, and the events between two of them.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "allocator/device_allocator.h"
#include "tests/allocator/device_fixture.h"

namespace weir {
namespace {

class DeviceSnapshotTest : public ::testing::Test {
 protected:
  ~DeviceSnapshotTest() override { BlockEvents::Watch(false); }

  // Blocks tile their segments; all but the evicted ones add up to the frames held.
  DeviceSnapshot Checked() {
    DeviceSnapshot snapshot = device_.Snapshot();
    Bytes held;
    for (const SegmentView& segment : snapshot.segments) {
      DeviceAddr at = segment.addr;
      for (size_t i = 0; i < segment.block_count; ++i) {
        EXPECT_EQ(snapshot.blocks[segment.first_block + i].addr, at);
        at += snapshot.blocks[segment.first_block + i].size;
      }
      EXPECT_EQ(at, segment.addr + segment.size);
      if (segment.state != SegmentState::kEvicted) held += segment.size;
    }
    EXPECT_EQ(held, device_.frames().held().bytes());
    return snapshot;
  }
  std::map<uint64_t, BlockView> BlocksOf(const DeviceSnapshot& snapshot) {
    std::map<uint64_t, BlockView> blocks;
    for (const BlockView& block : snapshot.blocks) blocks[block.addr.value()] = block;
    return blocks;
  }
  std::vector<EventKind> Kinds() {
    std::vector<EventKind> kinds;
    for (const BlockEvent& event : device_.TakeEvents()) kinds.push_back(event.kind);
    return kinds;
  }

  DeviceFixture fixture_{PageCount(16)};
  fakes::FakeDriver& driver_ = fixture_.driver;
  DeviceAllocator& device_ = *fixture_.device;
};

TEST_F(DeviceSnapshotTest, Snapshot_OfABlockOfEachKind_HasItsSizes) {
  EXPECT_TRUE(Checked().segments.empty());
  std::map<uint64_t, Bytes> made;
  for (Bytes size : {Bytes(1000), kMedium + Bytes(1), kLarge}) made[fixture_.Allocate(size).value()] = size;
  std::set<uint64_t> numbers;
  const DeviceSnapshot snapshot = Checked();
  for (const BlockView& block : snapshot.blocks) {
    if (block.state == BlockState::kFree) continue;
    EXPECT_EQ(block.requested, made.at(block.addr.value()));
    EXPECT_GE(block.size, block.requested);
    EXPECT_EQ(device_.FindBlock(block.addr)->number, block.number);
    numbers.insert(block.number);
  }
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_EQ(snapshot.segments.size(), 3u);
}

TEST_F(DeviceSnapshotTest, Snapshot_FreedRunsAndIdleFrames_AreSegmentsOfOneFreeBlock) {
  const DeviceAddr first = fixture_.Allocate(kLarge), second = fixture_.Allocate(kLarge * 2);
  fixture_.Free(first);
  fixture_.Free(second);  // the one before becomes a free run
  {
    ScopedContext context(driver_, kDevice);
    ASSERT_TRUE(device_.Harvest(PageCount(1)).ok());  // its frames lie unmapped in the pool
  }
  std::map<SegmentState, Bytes> sums;
  for (const SegmentView& segment : Checked().segments) {
    EXPECT_EQ(segment.block_count, 1u);
    sums[segment.state] += segment.size;
  }
  EXPECT_EQ(sums[SegmentState::kUnmapped], kPageBytes);
  EXPECT_EQ(sums[SegmentState::kCached] + sums[SegmentState::kUnmapped], kLarge * 3);
}

TEST_F(DeviceSnapshotTest, Snapshot_RecordedStreamIsBehind_BlockAwaitsItsFree) {
  const DeviceAddr at = fixture_.Allocate(kLarge);
  fixture_.Write(at, kLarge, 1, kStreamB);
  device_.RecordStream(at, kStreamB);
  fixture_.Free(at);
  EXPECT_EQ(BlocksOf(Checked())[at.value()].state, BlockState::kAwaitingFree);
  EXPECT_EQ(device_.Counters().blocks[kAllPools].current, 0);  // the job has it no more
  EXPECT_EQ(device_.Counters().active[kAllPools].current, 1);
  driver_.FinishEverything();
  EXPECT_TRUE(device_.FinishFrees(/*wait=*/false));
  EXPECT_EQ(BlocksOf(Checked())[at.value()].state, BlockState::kFree);
  EXPECT_EQ(device_.Counters().active[kAllPools].current, 0);
}

TEST_F(DeviceSnapshotTest, Snapshot_EvictedExtent_HoldsNoFrame) {
  const DeviceAddr at = fixture_.Allocate(kLarge);
  {
    LockHolder lock(&device_.mutex());
    Block* block = device_.FindBlockLocked(at);
    block->evidence = true;
    block->extent->without_evidence = 0;
    block->extent->slots.resize(block->extent->pages.count.count());
    device_.BeginDrainLocked(block->extent);
  }
  EXPECT_EQ(Checked().segments.front().state, SegmentState::kResident);  // still there, still held
  std::vector<FrameHandle> frames;
  {
    Extent* extent = device_.space().Owner(at);
    ASSERT_TRUE(device_.space().UnmapFrames(extent->pages, &frames).ok());
    LockHolder lock(&device_.mutex());
    device_.EndDrainLocked(extent);
  }
  device_.frames().Return(frames);
  BlockEvents::Watch(true);
  const DeviceSnapshot snapshot = Checked();
  ASSERT_EQ(snapshot.segments.size(), 2u);
  EXPECT_EQ(snapshot.segments[0].state, SegmentState::kEvicted);
  EXPECT_EQ(snapshot.blocks[snapshot.segments[0].first_block].state, BlockState::kAllocated);
  EXPECT_EQ(snapshot.segments[1].state, SegmentState::kUnmapped);
  fixture_.Free(at);
  using enum EventKind;
  EXPECT_EQ(Kinds(), (std::vector{kFreeRequested, kFreed, kForgotten}));
}

TEST_F(DeviceSnapshotTest, Events_OfABlocksLife_AreInOrder) {
  using enum EventKind;
  fixture_.Free(fixture_.Allocate(kLarge));
  EXPECT_TRUE(Kinds().empty());  // nobody watches
  device_.EmptyCache();
  BlockEvents::Watch(true);
  int cause = 0;
  EXPECT_EQ(BlockEvents::SetCause(&cause), nullptr);
  const DeviceAddr at = fixture_.Allocate(kLarge);
  EXPECT_EQ(BlockEvents::SetCause(nullptr), &cause);
  fixture_.Free(at);
  device_.EmptyCache();
  const std::vector<BlockEvent> events = device_.TakeEvents();
  std::vector<EventKind> kinds;
  for (const BlockEvent& event : events) {
    kinds.push_back(event.kind);
    EXPECT_EQ(event.addr, at);
    EXPECT_EQ(event.size, kLarge);
    EXPECT_EQ(event.stream, kStreamA);
    EXPECT_EQ(event.number != 0, event.kind != kMapped && event.kind != kUnmapped);
    EXPECT_EQ(event.cause, kinds.size() <= 2 ? &cause : nullptr);
  }
  EXPECT_EQ(kinds, (std::vector{kMapped, kAllocated, kFreeRequested, kFreed, kUnmapped}));
  EXPECT_TRUE(Kinds().empty());
}

TEST_F(DeviceSnapshotTest, Events_FreeBehindARecordedStream_IsFreedWhenItHasPassed) {
  using enum EventKind;
  const DeviceAddr at = fixture_.Allocate(kLarge);
  fixture_.Write(at, kLarge, 1, kStreamB);
  device_.RecordStream(at, kStreamB);
  BlockEvents::Watch(true);
  fixture_.Free(at);
  EXPECT_FALSE(device_.Free(at));  // freed twice: nothing is told
  EXPECT_EQ(Kinds(), (std::vector{kFreeRequested}));
  driver_.FinishEverything();
  device_.FinishFrees(/*wait=*/false);
  EXPECT_EQ(Kinds(), (std::vector{kFreed}));
}

TEST_F(DeviceSnapshotTest, Events_UnmapThatFails_RangeIsMappedAgain) {
  using enum EventKind;
  fixture_.Free(fixture_.Allocate(kLarge));
  BlockEvents::Watch(true);
  driver_.PlanFault(fakes::Fault{.call = fakes::Call::kUnmap});
  device_.EmptyCache();
  EXPECT_EQ(Kinds(), (std::vector{kUnmapped, kMapped}));
}

}  // namespace
}  // namespace weir
