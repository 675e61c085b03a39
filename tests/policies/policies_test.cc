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
