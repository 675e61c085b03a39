// How many extents a choice of victims looks at, and that none is forgotten that may leave.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "allocator/base/host_work.h"
#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

std::atomic<uint64_t> candidates{0};

void Listen(int work, uint64_t count) {
  if (work == static_cast<int>(HostWork::kCandidate)) candidates += count;
}

class VictimsTest : public ::testing::Test {
 protected:
  VictimsTest() { host_work_listener.store(&Listen); }
  ~VictimsTest() override { host_work_listener.store(nullptr); }

  // What `count` more allocations of a tensor's size look at, when `tensors` fill the card.
  uint64_t LookedAt(uint64_t tensors, int count) {
    PagerFixture fixture(PageCount(tensors * 2), PageCount(64));
    std::vector<Tensor> made;
    for (uint64_t i = 0; i < tensors; ++i) made.push_back(fixture.Make(kLarge, static_cast<uint32_t>(i)));
    const uint64_t before = candidates;
    for (int i = 0; i < count; ++i) made.push_back(fixture.Make(kLarge, 1));
    EXPECT_EQ(fixture.pager.Counters().evictions, static_cast<uint64_t>(count));
    return candidates - before;
  }
};

TEST_F(VictimsTest, Evict_TenTimesAsManyTensors_LooksAtNoMore) {
  EXPECT_EQ(LookedAt(10, 4), LookedAt(100, 4));
}

// The block that held the extent back is freed, and nobody touches the other one again.
TEST_F(VictimsTest, Evict_TheBlockWithoutEvidenceIsFreed_TheExtentLeavesInItsTurn) {
  PagerFixture fixture(PageCount(8), PageCount(16));
  Tensor shared = fixture.Make(kMedium, 1);
  const DeviceAddr unseen = fixture.Allocate(kMedium, kStreamA);
  {
    LockHolder lock(&fixture.device->mutex());
    ASSERT_EQ(fixture.device->FindBlockLocked(unseen)->extent,
              fixture.device->FindBlockLocked(shared.at)->extent);
  }
  Tensor first = fixture.Make(kLarge, 2), second = fixture.Make(kLarge, 3);
  const DeviceAddr room =
      fixture.Allocate(kLarge, kStreamA);  // `first` leaves: `shared` may not, and is passed over
  EXPECT_EQ(fixture.state(first), Residency::kInRam);
  EXPECT_EQ(fixture.state(shared), Residency::kResident);
  fixture.Free(unseen);
  fixture.Allocate(kLarge, kStreamA);
  EXPECT_EQ(fixture.state(shared), Residency::kInRam);
  EXPECT_EQ(fixture.state(second), Residency::kResident);
  fixture.Free(room);
  fixture.Use(shared);
}

}  // namespace
}  // namespace weir
