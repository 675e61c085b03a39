#include "allocator/base/lock_ranks.h"

#ifndef NDEBUG

#include "allocator/base/check.h"

namespace weir::internal {
namespace {

// The ranks this thread holds, in the order taken. Plain storage: no allocation, usable in thread exit.
constexpr int kMaxHeld = 16;
thread_local LockRank held[kMaxHeld];
thread_local int held_count = 0;

}  // namespace

void WillLock(LockRank rank) {
  for (int i = 0; i < held_count; ++i) {
    WEIR_CHECK(held[i] < rank) << "lock of rank " << static_cast<int>(rank) << " taken while holding rank "
                               << static_cast<int>(held[i]);
  }
  WEIR_CHECK(held_count < kMaxHeld);
  held[held_count++] = rank;
}

void DidUnlock(LockRank rank) {
  for (int i = held_count - 1; i >= 0; --i) {
    if (held[i] != rank) continue;
    for (int j = i; j + 1 < held_count; ++j) held[j] = held[j + 1];
    --held_count;
    return;
  }
  WEIR_CHECK(false) << "lock of rank " << static_cast<int>(rank) << " released but not held";
}

}  // namespace weir::internal

#endif  // NDEBUG
