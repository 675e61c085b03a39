#include "allocator/bin_bitmap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir {
namespace {

TEST(BinBitmapTest, FirstFromAndLastBelow_Empty_AreNone) {
  const BinBitmap bitmap;
  EXPECT_EQ(bitmap.FirstFrom(0), BinBitmap::kNone);
  EXPECT_EQ(bitmap.FirstFrom(BinBitmap::kBins - 1), BinBitmap::kNone);
  EXPECT_EQ(bitmap.LastBelow(0), BinBitmap::kNone);
  EXPECT_EQ(bitmap.LastBelow(BinBitmap::kBins), BinBitmap::kNone);
}

TEST(BinBitmapTest, RandomPrograms_AgainstASet_Agree) {
  std::mt19937_64 random(1);
  BinBitmap bitmap;
  std::set<uint64_t> model;
  for (int step = 0; step < 50000; ++step) {
    // Few at first and at times, so that words and their neighbours are empty.
    const uint64_t bin = random() % BinBitmap::kBins;
    if (step % 5000 < 40) {
      bitmap.Set(bin);
      model.insert(bin);
    } else if (!model.empty() && random() % 100 == 0) {
      bitmap.Clear(*model.begin());
      model.erase(model.begin());
    }
    const auto at = model.lower_bound(bin);
    ASSERT_EQ(bitmap.FirstFrom(bin), at == model.end() ? BinBitmap::kNone : *at);
    ASSERT_EQ(bitmap.LastBelow(bin), at == model.begin() ? BinBitmap::kNone : *std::prev(at));
    ASSERT_EQ(bitmap.LastBelow(BinBitmap::kBins), model.empty() ? BinBitmap::kNone : *model.rbegin());
  }
}

}  // namespace
}  // namespace weir
