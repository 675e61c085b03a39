// The interval map of last writers and readers, against a model that keeps every byte of every access.
#include "tools/emulated_gpu/device/access_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <vector>

namespace weir::emulated {
namespace {

std::set<Place> BytesOf(const Pattern& pattern, Place begin, Place end) {
  std::set<Place> bytes;
  for (Place at = begin; at < end; ++at) {
    if (pattern.pitch == 0 || (at + pattern.pitch * 1000 - pattern.phase) % pattern.pitch < pattern.width)
      bytes.insert(at);
  }
  return bytes;
}

Pattern RandomPattern(std::mt19937& random, Place begin) {
  if (random() % 3 == 0) return {};
  const uint64_t pitch = 1 + random() % 12;
  return {begin + random() % 5, pitch, 1 + random() % pitch};
}

TEST(AccessMap, Meet_IsWhatTheBytesSay) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    const Place begin = 100 + random() % 50, end = begin + random() % 90;
    const Pattern one = RandomPattern(random, begin), other = RandomPattern(random, begin);
    bool expected = false;
    const std::set<Place> bytes = BytesOf(other, begin, end);
    for (const Place at : BytesOf(one, begin, end)) expected = expected || bytes.count(at) != 0;
    ASSERT_EQ(Meet(one, other, begin, end), expected)
        << "round " << round << ": [" << begin << ", " << end << ") " << one.phase << "/" << one.pitch << "/"
        << one.width << " and " << other.phase << "/" << other.pitch << "/" << other.width;
  }
}

// Every access so far, byte by byte. Streams never wait for each other here; completion comes now and then.
TEST(AccessMap, Add_FindsAConflictExactlyWhereTheModelDoes) {
  std::mt19937 random(11);
  AccessMap map;
  struct Kept {
    std::set<Place> bytes;
    PlaceAccess access;
    bool hidden;  // a later write covers one of its bytes: who finds that write need not find this one
  };
  std::vector<Kept> model;
  Ticks completed(3), newest(3);
  int conflicts = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto index = static_cast<uint32_t>(random() % 3);
    const Place begin = random() % 200, end = begin + 1 + random() % 60;
    PlaceAccess access{index, ++newest[index], static_cast<uint64_t>(round), random() % 2 == 0,
                       RandomPattern(random, begin)};
    const std::set<Place> bytes = BytesOf(access.pattern, begin, end);
    bool certain = false, possible = false;
    for (Kept& kept : model) {
      if (kept.access.index == index || kept.access.tick <= completed[kept.access.index]) continue;
      if (!kept.access.write && !access.write) continue;
      bool meets = false;
      for (const Place at : bytes) meets = meets || kept.bytes.count(at) != 0;
      possible = possible || meets;
      certain = certain || (meets && !kept.hidden);
    }
    Past past{index, access.tick, 0, nullptr};
    PlaceAccess conflict;
    const bool found = map.Add(begin, end, access, past, completed, &conflict);
    ASSERT_TRUE(found || !certain) << "round " << round;
    ASSERT_TRUE(possible || !found) << "round " << round;
    conflicts += found ? 1 : 0;
    for (Kept& kept : model) {
      for (const Place at : bytes) kept.hidden = kept.hidden || (access.write && kept.bytes.count(at) != 0);
    }
    model.push_back({bytes, access, false});
    if (random() % 8 == 0) completed = newest, model.clear();
  }
  EXPECT_GT(conflicts, 500);  // the test meets what it is about
  EXPECT_LT(conflicts, 3500);
}

TEST(AccessMap, Size_StaysSmallWhenRangesAreReusedInOtherPieces) {
  AccessMap map;
  std::mt19937 random(3);
  Ticks completed;
  PlaceAccess conflict;
  for (Tick tick = 1; tick <= 20000; ++tick) {
    const Place begin = random() % 100000;
    PlaceAccess access{0, tick, tick, true, {}};
    map.Add(begin, begin + 1 + random() % 20000, access, {0, tick, 0, nullptr}, completed, &conflict);
    if (tick % 100 == 0) Raise(completed, 0, tick);
  }
  EXPECT_LT(map.size(), 2100u);
}

TEST(AccessMap, WholeWrites_MakeOneSegmentOfMany) {
  AccessMap map;
  PlaceAccess conflict;
  for (Place at = 0; at < 100; ++at)
    map.Add(at, at + 1, {0, at + 1, 0, true, {}}, {0, at + 1, 0, nullptr}, {}, &conflict);
  map.Add(0, 100, {0, 101, 0, true, {}}, {0, 101, 0, nullptr}, {}, &conflict);
  EXPECT_EQ(map.size(), 1u);
  EXPECT_TRUE(map.Add(50, 51, {1, 1, 0, false, {}}, {1, 1, 0, nullptr}, {}, &conflict));
  EXPECT_EQ(conflict.tick, 101u);
}

// A kernel of stream 0 was enqueued, stream 1 came after it and read; only then it is told what the kernel wrote.
TEST(AccessMap, Add_Late_CountsAsOfThen) {
  AccessMap map;
  PlaceAccess conflict;
  const Past writer{0, 1, 0, nullptr}, ordered{1, 1, 0, std::make_shared<const Ticks>(Ticks{1})};
  map.Add(0, 50, {1, 1, 2, false, {}}, ordered, {}, &conflict);
  EXPECT_FALSE(map.Add(0, 100, {0, 1, 1, true, {}}, writer, {}, &conflict));
  EXPECT_TRUE(map.Add(60, 70, {2, 1, 3, false, {}}, {2, 1, 0, nullptr}, {}, &conflict));
  EXPECT_EQ(conflict.work, 1u);
  EXPECT_TRUE(map.Add(10, 20, {3, 1, 4, true, {}}, {3, 1, 0, std::make_shared<const Ticks>(Ticks{1})}, {},
                      &conflict));
  EXPECT_EQ(conflict.work, 2u);  // the reader is still known
}

TEST(AccessMap, Add_LateUnorderedWithEarlierOnes_IsAConflict) {
  AccessMap map;
  PlaceAccess conflict;
  map.Add(0, 50, {1, 1, 1, false, {}}, {1, 1, 0, nullptr}, {}, &conflict);
  map.Add(0, 50, {2, 1, 3, false, {}}, {2, 1, 0, nullptr}, {}, &conflict);
  EXPECT_TRUE(map.Add(0, 50, {0, 1, 2, true, {}}, {0, 1, 0, nullptr}, {}, &conflict));
  EXPECT_EQ(conflict.work, 1u);
}

}  // namespace
}  // namespace weir::emulated
