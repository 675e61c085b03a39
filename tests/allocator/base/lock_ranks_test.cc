#include "allocator/base/lock_ranks.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

TEST(RankedMutex, TakenInOrder_Allowed) {
  RankedMutex pager(LockRank::kPager);
  RankedMutex frames(LockRank::kFramePool);
  int sections = 0;
  for (int i = 0; i < 2; ++i) {
    LockHolder outer(&pager);
    LockHolder inner(&frames);
    ++sections;
  }
  EXPECT_EQ(sections, 2);
}

TEST(RankedMutex, TwoThreads_ExcludeEachOther) {
  RankedMutex mutex(LockRank::kStats);
  int count = 0;
  const auto add = [&] {
    for (int i = 0; i < 10'000; ++i) {
      LockHolder lock(&mutex);
      ++count;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(count, 20'000);
}

#ifndef NDEBUG
// Clang would refuse to compile a lock that is not released.
void LockForEver(RankedMutex* mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex->Lock(); }

TEST(RankedMutexDeathTest, TakenAgainstOrder_Aborts) {
  RankedMutex pager(LockRank::kPager);
  RankedMutex frames(LockRank::kFramePool);
  LockHolder outer(&frames);
  EXPECT_DEATH(LockForEver(&pager), "rank 30 taken while holding rank 70");
}

TEST(RankedMutexDeathTest, SameRankTwice_Aborts) {
  RankedMutex first(LockRank::kTier);
  RankedMutex second(LockRank::kTier);
  LockHolder outer(&first);
  EXPECT_DEATH(LockForEver(&second), "rank 40 taken while holding rank 40");
}

TEST(RankedMutex, ReleasedOutOfOrder_RankIsFreeAgain) {
  RankedMutex pager(LockRank::kPager);
  RankedMutex frames(LockRank::kFramePool);
  pager.Lock();
  frames.Lock();
  pager.Unlock();
  frames.Unlock();
  LockHolder again(&pager);  // would abort if either were still remembered as held after kPager
  SUCCEED();
}
#endif

}  // namespace
}  // namespace weir
