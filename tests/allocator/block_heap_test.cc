#include "allocator/block_heap.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Stream kStreamA(1), kStreamB(2);
constexpr DeviceAddr kBase(uint64_t{1} << 40);

TEST(LayoutTest, KindOf_Limits_AreExclusive) {
  Layout layout = Layout::For(MiB(100));
  EXPECT_EQ(layout.KindOf(Bytes(1)), ExtentKind::kSlab);
  EXPECT_EQ(layout.KindOf(layout.small_limit - Bytes(1)), ExtentKind::kSlab);
  EXPECT_EQ(layout.KindOf(layout.small_limit), ExtentKind::kMedium);
  EXPECT_EQ(layout.KindOf(layout.medium_limit - Bytes(1)), ExtentKind::kMedium);
  EXPECT_EQ(layout.KindOf(layout.medium_limit), ExtentKind::kLarge);
}

TEST(LayoutTest, For_AnyCap_SharedBlocksFitTheirExtentAndTheBins) {
  for (Bytes cap : {MiB(2), MiB(100), GiB(1), GiB(80), Bytes::Max()}) {
    Layout layout = Layout::For(cap);
    EXPECT_LE(layout.small_limit, layout.slab_pages.bytes());
    EXPECT_LE(layout.medium_limit, layout.medium_pages.bytes());
    EXPECT_LT(layout.medium_limit, layout.medium_granule * (FitBins::kBins - 1));
    EXPECT_LT(layout.small_limit, layout.slab_granule * (FitBins::kBins - 1));
  }
}

class BlockHeapTest : public ::testing::Test {
 protected:
  BlockHeapTest() {
    slab_.kind = ExtentKind::kSlab;
    slab_.pages = PageRun{0, PageCount(1)};
    slab_.base = kBase;
    slab_.stream = kStreamA;
    heap_.Adopt(&slab_);
  }
  Block* Take(Bytes size) {
    Block* block = heap_.Allocate(ExtentKind::kSlab, size, kStreamA);
    EXPECT_TRUE(slab_.IsValid());
    return block;
  }
  void Free(Block* block) {
    heap_.Free(block);
    EXPECT_TRUE(slab_.IsValid());
  }

  BlockHeap heap_{Layout{}};
  Extent slab_;
};

TEST_F(BlockHeapTest, Allocate_OddSize_IsRoundedToTheGranuleAndAligned) {
  Block* first = Take(Bytes(1));
  Block* second = Take(Bytes(513));
  EXPECT_EQ(first->size, Bytes(512));
  EXPECT_EQ(second->size, Bytes(1024));
  EXPECT_EQ(second->requested, Bytes(513));
  EXPECT_EQ(second->addr, first->addr + Bytes(512));
}

TEST_F(BlockHeapTest, Allocate_OtherStream_FindsNoHole) {
  EXPECT_EQ(heap_.Allocate(ExtentKind::kSlab, Bytes(512), kStreamB), nullptr);
  EXPECT_EQ(heap_.Allocate(ExtentKind::kMedium, MiB(1), kStreamA), nullptr);
}

TEST_F(BlockHeapTest, Allocate_UntilFull_GivesEveryByteOnceAndThenNone) {
  uint64_t count = 0;
  DeviceAddr expected = kBase;
  while (Block* block = Take(Bytes(4096))) {
    EXPECT_EQ(block->addr, expected);
    expected += Bytes(4096);
    ++count;
  }
  EXPECT_EQ(count, kPageBytes / Bytes(4096));
  EXPECT_EQ(heap_.LargestHole(ExtentKind::kSlab, kStreamA), Bytes());
}

TEST_F(BlockHeapTest, Free_BetweenFreeNeighbours_MergesToOneHole) {
  Block* a = Take(KiB(4));
  Block* b = Take(KiB(4));
  Block* c = Take(KiB(4));
  Block* keep = Take(KiB(4));
  Free(a);
  Free(c);
  Free(b);
  Block* merged = Take(KiB(12));
  EXPECT_EQ(merged->addr, kBase);
  Free(keep);
}

TEST_F(BlockHeapTest, Find_InteriorAddresses_GiveTheLiveBlock) {
  Block* a = Take(KiB(4));
  Block* b = Take(KiB(8));
  EXPECT_EQ(heap_.Find(&slab_, a->addr), a);
  EXPECT_EQ(heap_.Find(&slab_, b->addr), b);
  EXPECT_EQ(heap_.Find(&slab_, b->addr + KiB(8) - Bytes(1)), b);
  EXPECT_EQ(heap_.Find(&slab_, b->addr + KiB(8)), nullptr);
  Free(a);
  EXPECT_EQ(heap_.Find(&slab_, kBase), nullptr);
  EXPECT_EQ(heap_.Find(&slab_, b->addr + Bytes(1)), b);
}

TEST_F(BlockHeapTest, RemoveHoles_ExtentNotResident_GivesNothingUntilTheyAreBack) {
  Block* keep = Take(KiB(4));
  Block* freed_meanwhile = Take(KiB(4));
  heap_.RemoveHoles(&slab_);
  slab_.state = Residency::kDraining;
  EXPECT_EQ(heap_.Allocate(ExtentKind::kSlab, Bytes(512), kStreamA), nullptr);
  heap_.Free(freed_meanwhile);
  EXPECT_EQ(heap_.Allocate(ExtentKind::kSlab, Bytes(512), kStreamA), nullptr);
  slab_.state = Residency::kResident;
  heap_.AddHoles(&slab_);
  EXPECT_EQ(Take(KiB(4))->addr, keep->addr + KiB(4));
}

TEST_F(BlockHeapTest, Free_WithEvidence_LeavesNoneForTheNextBlock) {
  Block* block = Take(KiB(4));
  block->evidence = true;
  --slab_.without_evidence;
  block->other_streams.Add(StreamUse{kStreamB, 1});
  Free(block);
  Block* next = Take(KiB(4));
  EXPECT_FALSE(next->evidence);
  EXPECT_EQ(next->storage, nullptr);
  EXPECT_TRUE(next->other_streams.uses().empty());
  EXPECT_EQ(slab_.without_evidence, 1u);
}

TEST_F(BlockHeapTest, Abandon_EmptyExtent_ItsHoleIsGone) {
  Free(Take(KiB(4)));
  heap_.Abandon(&slab_);
  EXPECT_EQ(slab_.first, nullptr);
  EXPECT_EQ(heap_.Allocate(ExtentKind::kSlab, Bytes(512), kStreamA), nullptr);
  heap_.Adopt(&slab_);
  EXPECT_NE(Take(Bytes(512)), nullptr);
}

}  // namespace
}  // namespace weir
