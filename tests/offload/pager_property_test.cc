// Random jobs: no wrong byte, no byte above the cap, nothing kept afterwards. A failure prints its seed; to
// run one seed alone: --gtest_random_seed=SEED.
#include <gtest/gtest.h>

#include <thread>
#include <tuple>

#include "tests/offload/random_job.h"

namespace weir {
namespace {

std::vector<uint64_t> Seeds(uint64_t count) {
  int only = GTEST_FLAG_GET(random_seed);  // 0 unless the flag is given
  if (only != 0) return {static_cast<uint64_t>(only)};
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

void ExpectNothingKept(PagerFixture& fixture) {
  EXPECT_EQ(fixture.device->Counters().blocks[kAllPools].current, 0);
  EXPECT_EQ(fixture.ram.used(), Bytes());
  EXPECT_EQ(fixture.driver.frames(), Bytes());
  EXPECT_EQ(fixture.driver.host_memory(), Bytes());
}

// Cap in pages, policy, whether the device works while the host looks away (else as late as it may).
class PagerPropertyTest : public ::testing::TestWithParam<std::tuple<uint64_t, const char*, bool>> {};

TEST_P(PagerPropertyTest, RandomJob_OneThread_KeepsEveryByteUnderTheCap) {
  auto [cap, policy, busy] = GetParam();
  int done = 0, refused = 0;
  uint64_t fetches = 0;
  for (uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PagerFixture fixture(PageCount(cap), PageCount(48), MakePolicy(policy), {.seed = busy ? seed : 0});
    RandomJob job(fixture, 1, seed, {});
    std::vector<JobTensor> shared;
    shared.push_back(job.MakeShared(kLarge));
    shared.push_back(job.MakeShared(kMedium));
    fixture.driver.FinishEverything();
    job.Run({&shared[0], &shared[1]});
    for (JobTensor& tensor : shared) {
      fixture.driver.FinishEverything();
      fixture.Drop(tensor);
    }
    job.Finish();
    ExpectNothingKept(fixture);
    EXPECT_LE(fixture.driver.peak_frames(), PageCount(cap).bytes());
    done += job.done();
    refused += job.refused();
    fetches += fixture.pager.Counters().fetches;
    if (HasFailure()) return;
  }
  // The programs do what they are there for.
  RecordProperty("refused", refused);
  EXPECT_GT(done, refused);
  EXPECT_TRUE(fetches > 0 || cap > 20);
}

INSTANTIATE_TEST_SUITE_P(Caps, PagerPropertyTest,
                         ::testing::Combine(::testing::Values(8, 12, 20, 64),
                                            ::testing::Values("lru", "youngest"), ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "pages_" +
                                  std::get<1>(info.param) + (std::get<2>(info.param) ? "_busy" : "_late");
                         });

class PagerThreadsPropertyTest : public ::testing::TestWithParam<std::tuple<uint64_t, const char*>> {};

TEST_P(PagerThreadsPropertyTest, RandomJobs_ThreeThreads_KeepEveryByteUnderTheCap) {
  auto [cap, policy] = GetParam();
  for (uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PagerFixture fixture(PageCount(cap), PageCount(96), MakePolicy(policy),
                         {.seed = seed % 2 == 0 ? 0 : seed});
    RandomJob::Shape shape{.steps = 60, .tensors = 8, .check_state = false};
    std::vector<std::unique_ptr<RandomJob>> jobs;
    for (uint32_t id = 1; id <= 3; ++id)
      jobs.push_back(std::make_unique<RandomJob>(fixture, id, seed, shape));
    std::vector<JobTensor> shared;
    shared.push_back(jobs[0]->MakeShared(kLarge));
    shared.push_back(jobs[0]->MakeShared(kMedium));
    fixture.driver.FinishEverything();
    std::vector<std::thread> threads;
    for (auto& job : jobs) {
      threads.emplace_back([&] { job->Run({&shared[0], &shared[1]}); });
    }
    for (std::thread& thread : threads) thread.join();
    fixture.driver.FinishEverything();
    for (JobTensor& tensor : shared) fixture.Drop(tensor);
    for (auto& job : jobs) job->Finish();
    ExpectNothingKept(fixture);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Caps, PagerThreadsPropertyTest,
                         ::testing::Combine(::testing::Values(14, 30), ::testing::Values("lru", "youngest")),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "pages_" +
                                  std::get<1>(info.param);
                         });

}  // namespace
}  // namespace weir
