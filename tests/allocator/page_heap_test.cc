#include "allocator/page_heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace weir {
namespace {

using ::testing::Optional;

constexpr Stream kStreamA(1), kStreamB(2);

PageRun Pages(uint64_t first, uint64_t count) { return PageRun{first, PageCount(count)}; }
PageHeap::MappedRun Mapped(uint64_t first, uint64_t count, Stream stream, StreamUses uses = {}) {
  return PageHeap::MappedRun{Pages(first, count), stream, std::move(uses)};
}
StreamUses Use(Stream stream, uint64_t epoch) {
  StreamUses uses;
  uses.Add(StreamUse{stream, epoch});
  return uses;
}

class PageHeapTest : public ::testing::Test {
 protected:
  ~PageHeapTest() override { EXPECT_TRUE(heap_.IsValid()); }
  // Takes everything, so that a test can put back the runs that it wants.
  void TakeAll() { ASSERT_THAT(heap_.TakeUnmapped(PageCount(16)), Optional(Pages(0, 16))); }

  PageHeap heap_{PageCount(16)};
};

TEST_F(PageHeapTest, TakeUnmapped_Fresh_CutsFromTheLowestAddress) {
  EXPECT_THAT(heap_.TakeUnmapped(PageCount(3)), Optional(Pages(0, 3)));
  EXPECT_THAT(heap_.TakeUnmapped(PageCount(2)), Optional(Pages(3, 2)));
}

TEST_F(PageHeapTest, TakeUnmapped_SeveralFit_TakesTheSmallest) {
  TakeAll();
  heap_.PutUnmapped(Pages(0, 4));
  heap_.PutUnmapped(Pages(8, 2));
  EXPECT_THAT(heap_.TakeUnmapped(PageCount(2)), Optional(Pages(8, 2)));
}

TEST_F(PageHeapTest, TakeUnmapped_NothingLongEnough_GivesNone) {
  TakeAll();
  heap_.PutUnmapped(Pages(0, 2));
  heap_.PutUnmapped(Pages(4, 2));
  EXPECT_EQ(heap_.TakeUnmapped(PageCount(3)), std::nullopt);
}

TEST_F(PageHeapTest, PutUnmapped_BetweenNeighbours_MergesAllThree) {
  TakeAll();
  heap_.PutUnmapped(Pages(2, 2));
  heap_.PutUnmapped(Pages(6, 2));
  heap_.PutUnmapped(Pages(4, 2));
  EXPECT_THAT(heap_.TakeUnmapped(PageCount(6)), Optional(Pages(2, 6)));
}

TEST_F(PageHeapTest, PutMapped_NextToUnmapped_DoesNotMerge) {
  TakeAll();
  heap_.PutUnmapped(Pages(0, 2));
  heap_.PutMapped(Mapped(2, 2, kStreamA));
  EXPECT_EQ(heap_.TakeUnmapped(PageCount(3)), std::nullopt);
  EXPECT_EQ(heap_.mapped_free(), PageCount(2));
  EXPECT_EQ(heap_.longest_mapped(), PageCount(2));
}

TEST_F(PageHeapTest, PutMapped_OfTwoStreams_DoesNotMerge) {
  TakeAll();
  heap_.PutMapped(Mapped(0, 2, kStreamA));
  heap_.PutMapped(Mapped(2, 2, kStreamB));
  EXPECT_FALSE(heap_.TakeMapped(PageCount(3), kStreamA).has_value());
  EXPECT_EQ(heap_.TakeMapped(PageCount(2), kStreamB)->run, Pages(2, 2));
  EXPECT_FALSE(heap_.TakeMapped(PageCount(1), kStreamB).has_value());
}

TEST_F(PageHeapTest, PutMapped_NeighboursWithDifferentUses_TheMergedRunHasBoth) {
  TakeAll();
  heap_.PutMapped(Mapped(0, 2, kStreamA, Use(kStreamA, 5)));
  heap_.PutMapped(Mapped(2, 2, kStreamA, Use(kStreamB, 7)));
  auto run = heap_.TakeMapped(PageCount(4), kStreamA);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->uses.uses().size(), 2u);
}

TEST_F(PageHeapTest, TakeMapped_PartOfARun_BothPartsKeepTheUses) {
  TakeAll();
  heap_.PutMapped(Mapped(0, 4, kStreamA, Use(kStreamB, 7)));
  auto part = heap_.TakeMapped(PageCount(1), kStreamA);
  auto rest = heap_.TakeForHarvest(PageCount(16));
  ASSERT_TRUE(part.has_value());
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(part->run, Pages(0, 1));
  EXPECT_EQ(rest[0].run, Pages(1, 3));
  EXPECT_EQ(part->uses.uses().size(), 1u);
  ASSERT_EQ(rest[0].uses.uses().size(), 1u);
  EXPECT_EQ(rest[0].uses.uses()[0].epoch, 7u);
}

TEST_F(PageHeapTest, TakeForHarvest_SeveralRuns_TakesTheLeastRecentlyFreedFirst) {
  TakeAll();
  heap_.PutMapped(Mapped(8, 2, kStreamA));
  heap_.PutMapped(Mapped(0, 2, kStreamB));
  auto runs = heap_.TakeForHarvest(PageCount(2));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].run, Pages(8, 2));
}

TEST_F(PageHeapTest, TakeForHarvest_LastRunIsLonger_IsCut) {
  TakeAll();
  heap_.PutMapped(Mapped(8, 2, kStreamA));
  heap_.PutMapped(Mapped(0, 4, kStreamA));
  auto runs = heap_.TakeForHarvest(PageCount(3));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].run.count + runs[1].run.count, PageCount(3));
  EXPECT_EQ(heap_.mapped_free(), PageCount(3));
}

// Against a plain array of page states: no page is lost, given twice, or given to the wrong stream.
TEST_F(PageHeapTest, RandomPrograms_AgainstAnArray_Agree) {
  enum State : int { kUnmapped = 0, kMappedA = 1, kMappedB = 2, kTaken = 3 };
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    PageHeap heap(PageCount(24));
    std::vector<int> model(24, kUnmapped);
    std::vector<PageRun> taken;
    auto take = [&](PageRun run, int expected) {
      for (uint64_t page = run.first; page < run.end(); ++page) {
        ASSERT_EQ(model[page], expected) << "seed " << seed;
        model[page] = kTaken;
      }
      taken.push_back(run);
    };
    for (int step = 0; step < 200; ++step) {
      PageCount count(1 + random() % 4);
      uint64_t choice = random() % 5;
      if (choice == 0) {
        if (auto run = heap.TakeUnmapped(count)) take(*run, kUnmapped);
      } else if (choice == 1) {
        Stream stream(1 + random() % 2);
        if (auto run = heap.TakeMapped(count, stream)) take(run->run, static_cast<int>(stream.handle()));
      } else if (choice == 2) {
        for (auto& run : heap.TakeForHarvest(count))
          take(run.run, static_cast<int>(run.lane.stream.handle()));
      } else if (!taken.empty()) {
        PageRun run = taken.back();
        taken.pop_back();
        int state = static_cast<int>(random() % 3);
        if (state == kUnmapped) {
          heap.PutUnmapped(run);
        } else {
          heap.PutMapped(PageHeap::MappedRun{run, Stream(static_cast<uintptr_t>(state)), {}});
        }
        for (uint64_t page = run.first; page < run.end(); ++page) model[page] = state;
      }
      ASSERT_TRUE(heap.IsValid()) << "seed " << seed << " step " << step;
    }
  }
}

TEST_F(PageHeapTest, TakeExtendable_SeveralShorterRuns_TheLongestComesWithThePagesBehindIt) {
  TakeAll();
  heap_.PutMapped(Mapped(0, 2, kStreamA));
  heap_.PutUnmapped(Pages(2, 6));
  heap_.PutMapped(Mapped(8, 3, kStreamA, Use(kStreamA, 7)));
  heap_.PutUnmapped(Pages(11, 4));
  std::optional<PageHeap::Extension> extension = heap_.TakeExtendable(PageCount(5), kStreamA);
  ASSERT_TRUE(extension.has_value());
  EXPECT_EQ(extension->mapped.run, Pages(8, 3));
  EXPECT_EQ(extension->missing, Pages(11, 2));
  ASSERT_EQ(extension->mapped.uses.uses().size(), 1u);
  EXPECT_EQ(extension->mapped.uses.uses()[0].epoch, 7u);
  EXPECT_EQ(heap_.mapped_free(), PageCount(2));
}

TEST_F(PageHeapTest, TakeExtendable_OtherStreamOrNoRoomBehind_GivesNone) {
  TakeAll();
  heap_.PutMapped(Mapped(0, 2, kStreamA));
  heap_.PutUnmapped(Pages(2, 2));
  EXPECT_FALSE(heap_.TakeExtendable(PageCount(3), kStreamB).has_value());
  EXPECT_FALSE(heap_.TakeExtendable(PageCount(5), kStreamA).has_value());
  EXPECT_TRUE(heap_.TakeExtendable(PageCount(4), kStreamA).has_value());
}

}  // namespace
}  // namespace weir
