#include "allocator/op_pins.h"

#include <gtest/gtest.h>

#include "allocator/device_allocator.h"
#include "tests/allocator/device_fixture.h"

namespace weir {
namespace {

class OpPinsTest : public ::testing::Test {
 protected:
  DeviceAddr Allocate(Bytes size, Stream stream = kStreamA) { return *device_.Allocate(size, stream, op_); }
  int ActivePinners() {
    LockHolder lock(&device_.mutex());
    return device_.ActivePinnersLocked();
  }
  Extent* ExtentOf(DeviceAddr at) {
    LockHolder lock(&device_.mutex());
    return device_.FindBlockLocked(at)->extent;
  }

  DeviceFixture fixture_{PageCount(32)};
  DeviceAllocator& device_ = *fixture_.device;
  OpPins op_;
};

TEST_F(OpPinsTest, Allocate_OutsideAnyOp_PinsNothing) {
  DeviceAddr at = Allocate(kLarge);
  EXPECT_EQ(fixture_.pins(at), 0u);
  EXPECT_EQ(ActivePinners(), 0);
}

// R1: until the outermost op ends.
TEST_F(OpPinsTest, Leave_InnerOp_KeepsThePinsUntilTheOutermostEnds) {
  op_.Enter("outer");
  op_.Enter("inner");
  DeviceAddr at = Allocate(kLarge);
  EXPECT_STREQ(op_.name(), "inner");
  op_.Leave();
  EXPECT_EQ(fixture_.pins(at), 1u);
  EXPECT_STREQ(op_.name(), "outer");
  op_.Leave();
  EXPECT_EQ(fixture_.pins(at), 0u);
  EXPECT_FALSE(op_.InOp());
}

TEST_F(OpPinsTest, Allocate_SmallBlock_NeedsNoPin) {
  op_.Enter("op");
  Allocate(kSmall);
  EXPECT_EQ(op_.size(), 0u);
  op_.Leave();
}

TEST_F(OpPinsTest, EndChunk_InsideAnOp_ReleasesOnlyThePinsOfTheChunk) {
  op_.Enter("list op");
  DeviceAddr before = Allocate(kLarge);
  op_.BeginChunk();
  DeviceAddr inside = Allocate(kLarge);
  op_.BeginChunk();
  DeviceAddr nested = Allocate(kLarge);
  op_.EndChunk();
  EXPECT_EQ(fixture_.pins(nested), 0u);
  EXPECT_EQ(fixture_.pins(inside), 1u);
  op_.EndChunk();
  EXPECT_EQ(fixture_.pins(inside), 0u);
  EXPECT_EQ(fixture_.pins(before), 1u);
  op_.Leave();
  EXPECT_EQ(fixture_.pins(before), 0u);
}

TEST_F(OpPinsTest, Leave_ChunkWasNotEnded_TheNextOpsChunksAreRight) {
  op_.Enter("list op that threw");
  Allocate(kLarge);
  op_.BeginChunk();
  op_.Leave();
  op_.Enter("next op");
  DeviceAddr kept = Allocate(kLarge);
  op_.BeginChunk();
  DeviceAddr released = Allocate(kLarge);
  op_.EndChunk();
  EXPECT_EQ(fixture_.pins(released), 0u);
  EXPECT_EQ(fixture_.pins(kept), 1u);
  op_.Leave();
  op_.Enter("a third");
  EXPECT_EQ(op_.size(), 0u);
  op_.Leave();
}

TEST_F(OpPinsTest, ActivePinners_OneThreadWithManyPins_CountsOnce) {
  op_.Enter("op");
  Allocate(kLarge);
  Allocate(kMedium);
  EXPECT_EQ(ActivePinners(), 1);
  op_.Leave();
  EXPECT_EQ(ActivePinners(), 0);
}

TEST_F(OpPinsTest, BytesPinned_SameExtentTwice_CountsItOnce) {
  op_.Enter("op");
  Allocate(kMedium);
  Allocate(kMedium);
  EXPECT_EQ(op_.size(), 2u);
  EXPECT_EQ(op_.BytesPinned(&device_), Layout::For(device_.cap()).medium_pages.bytes());
  op_.Leave();
}

TEST_F(OpPinsTest, Leave_TwoDevices_ReleasesBoth) {
  DeviceFixture second(PageCount(8));
  op_.Enter("op");
  DeviceAddr here = Allocate(kLarge);
  DeviceAddr there = *second.device->Allocate(kLarge, kStreamA, op_);
  DeviceAddr here_too = Allocate(kLarge);
  EXPECT_EQ(op_.BytesPinned(second.device.get()), kLarge);
  op_.Leave();
  EXPECT_EQ(fixture_.pins(here) + fixture_.pins(here_too) + second.pins(there), 0u);
  EXPECT_EQ(op_.size(), 0u);
}

TEST_F(OpPinsTest, Free_PinnedBlock_ItsPagesAreReusedAtOnceAndThePinsEndWell) {
  op_.Enter("op");
  DeviceAddr temporary = Allocate(kLarge);
  fixture_.Free(temporary);
  EXPECT_EQ(Allocate(kLarge), temporary);
  EXPECT_EQ(fixture_.pins(temporary), 2u);
  op_.Leave();
  EXPECT_EQ(fixture_.pins(temporary), 0u);
}

// The object of an extent that ends while pinned must not become another extent before its pins have ended.
TEST_F(OpPinsTest, Free_ExtentEndsWhilePinned_ItsObjectIsNotReusedYet) {
  op_.Enter("op");
  DeviceAddr pinned = Allocate(kLarge);
  Extent* ended = ExtentOf(pinned);
  fixture_.Free(pinned);
  device_.EmptyCache();  // ends it
  std::vector<DeviceAddr> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(fixture_.Allocate(kLarge));
    EXPECT_NE(ExtentOf(others.back()), ended);
  }
  op_.Leave();
  for (DeviceAddr at : others) EXPECT_EQ(fixture_.pins(at), 0u);
  DeviceAddr next = fixture_.Allocate(kLarge);
  EXPECT_EQ(ExtentOf(next), ended);  // now it may
  EXPECT_EQ(fixture_.pins(next), 0u);
}

// An op on another stream than the block's drops the block while it runs: its pages must not go before its work has ended.
TEST_F(OpPinsTest, Free_PinnedOnAnotherStream_ItsPagesWaitForThatStream) {
  DeviceAddr at = fixture_.Allocate(kLarge, kStreamA);
  op_.Enter("op");
  {
    LockHolder lock(&device_.mutex());
    device_.PinLocked(device_.FindBlockLocked(at)->extent, kStreamB, op_);
  }
  fixture_.Write(at, kLarge, 1, kStreamB);
  fixture_.Free(at);
  device_.EmptyCache();  // the fake driver reports an unmap under queued work
  EXPECT_FALSE(fixture_.driver.Mapped(at));
  op_.Leave();
}

TEST_F(OpPinsTest, Leave_PinsOfSeveralStreams_EachIsAUseOfItsStream) {
  DeviceAddr at = fixture_.Allocate(kLarge, kStreamA);
  {
    LockHolder lock(&device_.mutex());
    op_.Enter("op");
    device_.PinLocked(device_.FindBlockLocked(at)->extent, kStreamB, op_);
  }
  op_.Leave();
  LockHolder lock(&device_.mutex());
  const auto uses = device_.FindBlockLocked(at)->extent->uses.uses();
  EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [](StreamUse use) { return use.stream == kStreamB; }));
}

}  // namespace
}  // namespace weir
