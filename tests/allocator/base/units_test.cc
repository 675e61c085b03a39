#include "allocator/base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace weir {
namespace {

static_assert(!std::is_convertible_v<uint64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, uint64_t>);
static_assert(!std::is_convertible_v<uint64_t, DeviceAddr>);
static_assert(!std::is_convertible_v<uint64_t, PageCount>);
static_assert(!std::is_convertible_v<uintptr_t, Stream>);
static_assert(!std::is_convertible_v<Bytes, PageCount>);

TEST(Bytes_RoundedUpTo, NotAMultiple_NextMultiple) {
  EXPECT_EQ(Bytes(513).RoundedUpTo(Bytes(512)), Bytes(1024));
  EXPECT_EQ(Bytes(512).RoundedUpTo(Bytes(512)), Bytes(512));
  EXPECT_EQ(Bytes(0).RoundedUpTo(Bytes(512)), Bytes(0));
}

TEST(Bytes_RoundedDownTo, NotAMultiple_MultipleBelow) {
  EXPECT_EQ(Bytes(1023).RoundedDownTo(Bytes(512)), Bytes(512));
  EXPECT_EQ(Bytes(511).RoundedDownTo(Bytes(512)), Bytes(0));
}

TEST(Bytes_Arithmetic, Mixed_KeepsUnits) {
  EXPECT_EQ(MiB(3) - MiB(1), KiB(2048));
  EXPECT_EQ(MiB(3) / MiB(1), 3u);
  EXPECT_EQ(GiB(1) % MiB(3), MiB(1));
  EXPECT_TRUE(GiB(1).IsMultipleOf(MiB(4)));
  EXPECT_FALSE(GiB(1).IsMultipleOf(MiB(3)));
}

TEST(Bytes_SaturatingSubtract, LargerSubtrahend_Zero) {
  EXPECT_EQ(SaturatingSubtract(MiB(1), MiB(2)), Bytes(0));
  EXPECT_EQ(SaturatingSubtract(MiB(3), MiB(1)), MiB(2));
}

#ifndef NDEBUG
TEST(BytesDeathTest, SubtractMore_Aborts) { EXPECT_DEATH(Bytes(1) - Bytes(2), "check failed"); }
TEST(BytesDeathTest, AddPastTheEnd_Aborts) { EXPECT_DEATH(Bytes::Max() + Bytes(1), "check failed"); }
#endif

TEST(DeviceAddr_Arithmetic, OffsetAndBack_SameAddress) {
  const DeviceAddr start(0x7f0000000000);
  EXPECT_EQ((start + MiB(2)) - start, MiB(2));
  EXPECT_EQ((start + MiB(2)) - MiB(2), start);
  EXPECT_LT(start, start + Bytes(1));
  EXPECT_TRUE(DeviceAddr().IsNull());
  EXPECT_EQ(DeviceAddr::Of(start.pointer()), start);
}

TEST(PageCount_ToHold, PartialPage_RoundsUp) {
  EXPECT_EQ(PageCount::ToHold(Bytes(0)).count(), 0u);
  EXPECT_EQ(PageCount::ToHold(Bytes(1)).count(), 1u);
  EXPECT_EQ(PageCount::ToHold(MiB(2)).count(), 1u);
  EXPECT_EQ(PageCount::ToHold(MiB(2) + Bytes(1)).bytes(), MiB(4));
}

}  // namespace
}  // namespace weir
