// Eviction and pools: blocks of a pool leave like any other, also while it ends; room for what is outside.
#include <gtest/gtest.h>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

class PagerPoolsTest : public ::testing::Test {
 protected:
  PagerFixture fixture_{PageCount(8), PageCount(16)};
  DeviceAllocator& device_ = *fixture_.device;
};

TEST_F(PagerPoolsTest, EndPool_BlockIsInRam_ComesBackAndReturnsToTheGeneralHeap) {
  const PoolId pool = device_.MakePool();
  Tensor tensor = fixture_.Make(kLarge, 5, Lane(kStreamA, pool));
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamB);
  ASSERT_EQ(fixture_.state(tensor), Residency::kInRam);
  EXPECT_EQ(device_.PoolOf(tensor.at), pool);
  device_.EndPool(pool);
  fixture_.Use(tensor);
  EXPECT_EQ(device_.PoolOf(tensor.at), PoolId());
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerPoolsTest, EndPool_SharedExtentIsInRam_ItsHolesServeTheGeneralHeapOnceItIsBack) {
  const PoolId pool = device_.MakePool();
  Tensor tensor = fixture_.Make(kMedium, 5, Lane(kStreamA, pool));
  fixture_.EvictByPressure(tensor, kPageBytes * 8, kStreamB);
  ASSERT_EQ(fixture_.state(tensor), Residency::kInRam);
  device_.EndPool(pool);
  fixture_.Use(tensor);
  const DeviceAddr hole = fixture_.Allocate(kMedium);
  EXPECT_LT(hole.value() - tensor.at.value(), (kPageBytes * 4).count());
  EXPECT_TRUE(device_.IsValid());
}

TEST_F(PagerPoolsTest, TakeOutside_NoRoom_TheLeastRecentlyUsedMakesWayAndComesBack) {
  Tensor first = fixture_.Make(kLarge, 1), second = fixture_.Make(kLarge, 2);
  ASSERT_TRUE(device_.TakeOutside(kPageBytes * 5, kStreamA, fixture_.no_op).ok());
  EXPECT_EQ(fixture_.state(first), Residency::kInRam);
  EXPECT_EQ(fixture_.state(second), Residency::kResident);
  EXPECT_LE(device_.frames().counted(), PageCount(8));
  EXPECT_LE(fixture_.driver.frames(), kPageBytes * 3);
  fixture_.Use(first);  // in what is left
  fixture_.Use(second);
  EXPECT_TRUE(device_.IsValid());
  EXPECT_TRUE(absl::IsResourceExhausted(device_.TakeOutside(kPageBytes * 4, kStreamA, fixture_.no_op)));
  device_.GiveOutside(kPageBytes * 5);
}

}  // namespace
}  // namespace weir
