#include "allocator/stream_uses.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Stream kStreamA(1), kStreamB(2);

TEST(StreamUsesTest, Add_SameStream_KeepsTheLastUse) {
  StreamUses uses;
  uses.Add(StreamUse{kStreamA, 5});
  uses.Add(StreamUse{kStreamA, 3});
  uses.Add(StreamUse{kStreamB, 1});
  ASSERT_EQ(uses.uses().size(), 2u);
  EXPECT_EQ(uses.uses()[0].epoch, 5u);
}

TEST(StreamClockTest, Passed_NewestUse_CoversAllEarlierOnesOfTheStreamOnly) {
  StreamClock clock;
  StreamUse first = clock.Mark(kStreamA), second = clock.Mark(kStreamA), other = clock.Mark(kStreamB);
  EXPECT_FALSE(clock.HasPassed(first));
  clock.Passed(clock.Newest(kStreamA));
  EXPECT_TRUE(clock.HasPassed(first));
  EXPECT_TRUE(clock.HasPassed(second));
  EXPECT_FALSE(clock.HasPassed(other));
  EXPECT_FALSE(clock.HasPassed(clock.Mark(kStreamA)));
}

TEST(StreamClockTest, Passed_OlderThanKnown_DoesNotGoBack) {
  StreamClock clock;
  StreamUse first = clock.Mark(kStreamA), second = clock.Mark(kStreamA);
  clock.Passed(second);
  clock.Passed(first);
  EXPECT_TRUE(clock.HasPassed(second));
}

TEST(StreamClockTest, HavePassed_NoUses_IsTrue) {
  StreamClock clock;
  EXPECT_TRUE(clock.HavePassed(StreamUses{}));
}

TEST(StreamClockTest, Newest_StreamNeverUsed_HasPassed) {
  StreamClock clock;
  EXPECT_TRUE(clock.HasPassed(clock.Newest(kStreamA)));
}

}  // namespace
}  // namespace weir
