// Random programs: four threads allocate, free, record streams, make and end pools and make each other's tensors leave, on three
// streams each, while watching ends and begins now and then. The model is the pattern that each tensor has to hold.
//
// TEST_PROGRAMS: how many in all, 500 unless given. TEST_SEED: of the first one; a failure names the seed of its program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/offload/random_job.h"

namespace weir {
namespace {

constexpr uint32_t kThreads = 4;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Sums {
  int done = 0, refused = 0;
  uint64_t evictions = 0;
};

void RunProgram(uint64_t seed, PageCount cap, const char* policy, Sums& sums) {
  PagerFixture fixture(cap, PageCount(64), MakePolicy(policy), {.seed = seed % 2 == 0 ? 0 : seed});
  RandomJob::Shape shape{.steps = 24, .tensors = 5, .check_state = false, .ends_watch = true};
  std::vector<std::unique_ptr<RandomJob>> jobs;
  for (uint32_t id = 1; id <= kThreads; ++id)
    jobs.push_back(std::make_unique<RandomJob>(fixture, id, seed, shape));
  std::vector<JobTensor> shared;
  shared.push_back(jobs[0]->MakeShared(kLarge));
  fixture.driver.FinishEverything();
  std::vector<std::thread> threads;
  for (auto& job : jobs) threads.emplace_back([&] { job->Run({&shared[0]}); });
  for (std::thread& thread : threads) thread.join();
  fixture.driver.FinishEverything();
  for (JobTensor& tensor : shared) fixture.Drop(tensor);
  for (auto& job : jobs) job->SeeAll();
  for (auto& job : jobs) {
    job->Finish();
    sums.done += job->done();
    sums.refused += job->refused();
  }
  sums.evictions += fixture.pager.Counters().evictions;
  EXPECT_EQ(fixture.device->Counters().blocks[kAllPools].current, 0);
  EXPECT_EQ(fixture.ram.used(), Bytes());
  EXPECT_EQ(fixture.driver.frames(), Bytes());
  EXPECT_LE(fixture.driver.peak_frames(), cap.bytes());
}

class RandomProgramsTest : public ::testing::TestWithParam<std::tuple<uint64_t, const char*, uint64_t>> {
 protected:
  static constexpr uint64_t kParts = 16;
};

TEST_P(RandomProgramsTest, FourThreads_KeepEveryByteUnderTheCap) {
  const auto [cap, policy, part] = GetParam();
  const uint64_t count = FromEnvironment("TEST_PROGRAMS", 500) / kParts + 1;
  const uint64_t first = FromEnvironment("TEST_SEED", 1) + part * count;
  Sums sums;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RunProgram(seed, PageCount(cap), policy, sums);
    if (HasFailure()) return;
  }
  // The programs do what they are there for.
  EXPECT_GT(sums.done, sums.refused);
  EXPECT_GT(sums.evictions, count);
}

INSTANTIATE_TEST_SUITE_P(Caps, RandomProgramsTest,
                         ::testing::Combine(::testing::Values(16, 28), ::testing::Values("lru", "youngest"),
                                            ::testing::Range<uint64_t>(0, 4)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "pages_" +
                                  std::get<1>(info.param) + "_" + std::to_string(std::get<2>(info.param));
                         });

}  // namespace
}  // namespace weir
