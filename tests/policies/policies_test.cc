// The interface's tests run for each policy; what orders the candidates is tested by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "policies/ordered_policy.h"
#include "policies/registry.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Candidate Of(uint64_t number, uint64_t last_touch, uint64_t pages) {
  return Candidate{number, last_touch, PageCount(pages)};
}

class PolicyTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Policy> policy_ = MakePolicy(GetParam());
};

TEST_P(PolicyTest, PickVictims_NoCandidates_PicksNone) {
  EXPECT_THAT(policy_->PickVictims({}, PageCount(1)), IsEmpty());
}

TEST_P(PolicyTest, PickVictims_NothingNeeded_PicksNone) {
  EXPECT_THAT(policy_->PickVictims({Of(1, 1, 1)}, PageCount()), IsEmpty());
}

TEST_P(PolicyTest, PickVictims_NotEnough_PicksAll) {
  EXPECT_EQ(policy_->PickVictims({Of(1, 1, 1), Of(2, 2, 2)}, PageCount(9)).size(), 2u);
}

TEST_P(PolicyTest, PickVictims_RandomCandidates_SufficesWithoutRepeatsAndIsTheSameTwice) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Candidate> candidates;
    uint64_t total = 0;
    for (uint64_t i = 0; i < random() % 20; ++i) {
      candidates.push_back(Of(i + 1, random() % 30, 1 + random() % 8));
      total += candidates.back().pages.count();
    }
    PageCount needed(random() % 40);
    std::vector<size_t> victims = policy_->PickVictims(candidates, needed);
    EXPECT_EQ(std::set<size_t>(victims.begin(), victims.end()).size(), victims.size());
    PageCount sum, without_last;
    for (size_t victim : victims) {
      ASSERT_LT(victim, candidates.size());
      without_last = sum;
      sum += candidates[victim].pages;
    }
    EXPECT_GE(sum.count(), std::min(needed.count(), total));
    if (!victims.empty()) {
      EXPECT_LT(without_last, needed) << "one more than it takes";
    }
    EXPECT_EQ(policy_->PickVictims(candidates, needed), victims);
  }
}

// What is offered in order may end where it suffices.
TEST_P(PolicyTest, PickVictims_OfferedAsItWants_IsTheChoiceOfAll) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    std::vector<Candidate> all;
    for (uint64_t i = 0; i < random() % 20; ++i) all.push_back(Of(i + 1, i + 1, 1 + random() % 8));
    std::shuffle(all.begin(), all.end(), random);
    for (size_t i = 0; i < all.size(); ++i)
      all[i].number = i + 1;  // touches and ages have nothing to do with each other
    const PageCount needed(1 + random() % 40);
    std::vector<Candidate> offered = all;
    if (policy_->offer() == Offer::kLeastRecentlyTouched) {
      std::sort(offered.begin(), offered.end(), [](auto& a, auto& b) { return a.last_touch < b.last_touch; });
      PageCount sum;
      size_t enough = 0;
      while (enough < offered.size() && sum < needed) sum += offered[enough++].pages;
      offered.resize(enough);
    }
    const auto numbers = [&](const std::vector<Candidate>& candidates) {
      std::vector<uint64_t> picked;
      for (size_t index : policy_->PickVictims(candidates, needed))
        picked.push_back(candidates[index].number);
      return picked;
    };
    EXPECT_EQ(numbers(offered), numbers(all));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PolicyTest, ::testing::Values("lru", "youngest", "auto"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LruPolicyTest, PickVictims_DifferentTouches_LongestUntouchedFirst) {
  EXPECT_THAT(LruPolicy().PickVictims({Of(1, 30, 1), Of(2, 10, 1), Of(3, 20, 1)}, PageCount(2)),
              ElementsAre(1, 2));
}

TEST(LruPolicyTest, PickVictims_SameTouch_OlderFirst) {
  EXPECT_THAT(LruPolicy().PickVictims({Of(7, 5, 1), Of(3, 5, 1)}, PageCount(1)), ElementsAre(1));
}

TEST(YoungestPolicyTest, PickVictims_AnyTouches_LastCreatedFirst) {
  EXPECT_THAT(YoungestPolicy().PickVictims({Of(1, 30, 1), Of(3, 99, 1), Of(2, 1, 1)}, PageCount(2)),
              ElementsAre(1, 2));
}

TEST(RegistryTest, MakePolicy_Names_AreKnownOrNull) {
  EXPECT_EQ(MakePolicy("lru")->name(), "lru");
  EXPECT_EQ(MakePolicy("youngest")->name(), "youngest");
  EXPECT_NE(MakePolicy("auto"), nullptr);
  EXPECT_EQ(MakePolicy("fifo"), nullptr);
}

}  // namespace
}  // namespace weir
