// Jobs whose blocks lie in each other's way: free pages serve wherever they are (cases C01, C04, C08).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

constexpr uint64_t kCap = 100;  // pages

class FragmentationTest : public ::testing::Test {
 protected:
  Bytes Pages(uint64_t count) { return PageCount(count).bytes(); }

  PagerFixture fixture_{PageCount(kCap), PageCount(kCap)};
};

// C01: a large block is made, freed, and made again after small ones have settled where it was.
TEST_F(FragmentationTest, Allocate_LargeAgainAmongSmallOnes_TheFreePagesServe) {
  fixture_.Free(fixture_.Allocate(Pages(70)));
  std::vector<DeviceAddr> kept;
  for (int i = 0; i < 40; ++i) {
    const DeviceAddr small = fixture_.Allocate(MiB(8) + Bytes(1));  // has pages of its own
    if (i % 2 == 0 && kept.size() < 4) {
      kept.push_back(small);
    } else {
      fixture_.Free(small);
    }
  }
  const DeviceAddr again = fixture_.Allocate(Pages(70));
  fixture_.Write(again, Pages(70), 1);
  fixture_.Check(again, Pages(70), 1);
  EXPECT_EQ(fixture_.pager.Counters().evictions, 0u) << "what is alive fits beside it";
}

// C04: sizes change with each step; what is held follows what is alive, and nothing alive leaves for a cached block.
TEST_F(FragmentationTest, Steps_OfOtherSizes_HoldLittleMoreThanIsAlive) {
  uint64_t most_alive = 0;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t tokens : {12u, 17u, 19u, 14u, 20u}) {
      std::vector<DeviceAddr> made;
      uint64_t alive = 0;
      for (uint64_t part : {tokens, tokens / 2, tokens + 3}) {
        made.push_back(fixture_.Allocate(Pages(part)));
        alive += part;
      }
      most_alive = std::max(most_alive, alive);
      for (DeviceAddr at : made) fixture_.Free(at);
    }
  }
  // Up to 32 idle pages are left where they are (DeviceAllocator::MoveIdleFrames).
  EXPECT_LE(fixture_.device->frames().peak_held(), PageCount(most_alive + 32));
  EXPECT_EQ(fixture_.pager.Counters().evictions, 0u);
}

// C08: thousands of steps of sizes that are small as a rule, and one that is not: what was idle serves it, and what is cold leaves.
TEST_F(FragmentationTest, OneHugeStepAmongMany_IsServed) {
  Tensor weights = fixture_.Make(Pages(40), 7);
  std::mt19937_64 random(8);
  for (int step = 0; step < 2000; ++step) {
    const uint64_t pages = step == 1500 ? 90 : 1 + random() % (random() % 20 + 1);
    fixture_.Free(fixture_.Allocate(Pages(pages)));
  }
  EXPECT_EQ(fixture_.pager.Counters().evictions, 1u) << "only for the one";
  fixture_.Use(weights);
}

}  // namespace
}  // namespace weir
