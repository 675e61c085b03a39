#include "allocator/fit_bins.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir {
namespace {

constexpr Bytes kGranule(512);

class FitBinsTest : public ::testing::Test {
 protected:
  Block* Add(Bytes size) {
    blocks_.push_back(std::make_unique<Block>());
    blocks_.back()->size = size;
    bins_->Insert(blocks_.back().get());
    return blocks_.back().get();
  }

  std::unique_ptr<FitBins> bins_ = std::make_unique<FitBins>(kGranule);
  std::vector<std::unique_ptr<Block>> blocks_;
};

TEST_F(FitBinsTest, SmallestFit_Empty_IsNull) {
  EXPECT_EQ(bins_->SmallestFit(kGranule), nullptr);
  EXPECT_EQ(bins_->LargestSize(), Bytes());
}

TEST_F(FitBinsTest, SmallestFit_ExactSize_IsFoundBeforeALargerOne) {
  Add(kGranule * 100);
  Block* exact = Add(kGranule * 3);
  EXPECT_EQ(bins_->SmallestFit(kGranule * 3), exact);
}

TEST_F(FitBinsTest, SmallestFit_OnlySmallerOnes_IsNull) {
  Add(kGranule * 63);
  EXPECT_EQ(bins_->SmallestFit(kGranule * 64), nullptr);
}

TEST_F(FitBinsTest, SmallestFit_NextWordOfTheBitmap_IsFound) {
  Block* far = Add(kGranule * 4000);
  EXPECT_EQ(bins_->SmallestFit(kGranule), far);
  EXPECT_EQ(bins_->LargestSize(), kGranule * 4000);
}

TEST_F(FitBinsTest, SmallestFit_SeveralOfASize_IsTheLastInserted) {
  Add(kGranule * 5);
  Block* last = Add(kGranule * 5);
  EXPECT_EQ(bins_->SmallestFit(kGranule * 5), last);
}

TEST_F(FitBinsTest, Remove_MiddleOfABin_KeepsTheOthers) {
  Block* first = Add(kGranule * 5);
  Block* middle = Add(kGranule * 5);
  Block* last = Add(kGranule * 5);
  bins_->Remove(middle);
  EXPECT_EQ(bins_->SmallestFit(kGranule * 5), last);
  bins_->Remove(last);
  EXPECT_EQ(bins_->SmallestFit(kGranule * 5), first);
  bins_->Remove(first);
  EXPECT_EQ(bins_->SmallestFit(kGranule), nullptr);
}

TEST_F(FitBinsTest, LargestSize_LargerThanTheLastBin_IsAtLeastEveryLegalRequest) {
  Add(kGranule * FitBins::kBins * 2);
  EXPECT_GE(bins_->LargestSize(), kGranule * (FitBins::kBins - 1));
  EXPECT_NE(bins_->SmallestFit(kGranule * (FitBins::kBins - 1)), nullptr);
}

TEST_F(FitBinsTest, RandomPrograms_AgainstAMultiset_AgreeOnTheSize) {
  std::mt19937_64 random(1);
  std::multiset<uint64_t> model;
  std::vector<Block*> inside;
  for (int step = 0; step < 20000; ++step) {
    uint64_t granules = 1 + random() % (FitBins::kBins - 1);
    if (random() % 2 == 0 || inside.empty()) {
      inside.push_back(Add(kGranule * granules));
      model.insert(granules);
    } else {
      std::swap(inside[random() % inside.size()], inside.back());
      bins_->Remove(inside.back());
      model.erase(model.find(inside.back()->size / kGranule));
      inside.pop_back();
    }
    auto expected = model.lower_bound(granules);
    Block* found = bins_->SmallestFit(kGranule * granules);
    ASSERT_EQ(found == nullptr, expected == model.end());
    if (found == nullptr) continue;
    ASSERT_EQ(found->size / kGranule, *expected);
  }
}

}  // namespace
}  // namespace weir
