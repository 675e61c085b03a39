// The Nth driver call of a scenario fails, for every N, once and for good, with each status a driver may
// give. Whatever fails is told; nothing crashes; no byte is wrong where success was told; and after a fault
// that was not for good the job goes on and finds all its bytes.
#include <gtest/gtest.h>

#include "tests/offload/pager_fixture.h"

namespace weir {
namespace {

using fakes::Fault;

class Scenario {
 public:
  explicit Scenario(PagerFixture& fixture) : fixture_(fixture) {}

  // Twice as many bytes as the cap, two streams, recorded streams, a temporary, an emptied cache. Returns how
  // many steps were refused.
  int Run() {
    for (uint32_t i = 1; i <= 4; ++i) Make(kPageBytes * (1 + i % 3), i, i % 2 == 0 ? kStreamA : kStreamB);
    Make(kMedium, 5, kStreamA);
    Make(kMedium, 6, kStreamA);
    for (Tensor& tensor : tensors_) Read(tensor, kStreamA);
    Temporary();
    if (!tensors_.empty()) {
      fixture_.device->RecordStream(tensors_.back().at, kStreamB);
      fixture_.Drop(tensors_.back());
      gone_.push_back(std::move(tensors_.back()));
      tensors_.pop_back();
    }
    fixture_.device->EmptyCache();
    Make(kPageBytes * 3, 7, kStreamB);
    for (Tensor& tensor : tensors_) Read(tensor, kStreamB);
    return refused_;
  }

  // All that was made is still there.
  void ReadAllBack() {
    for (Tensor& tensor : tensors_) {
      OpScope op(op_, "read back");
      absl::Status status = fixture_.Touch({&tensor}, op_, kStreamC);
      ASSERT_TRUE(status.ok()) << status;
      Order(kStreamC);
      fixture_.Check(tensor.at, tensor.size, tensor.pattern, kStreamC, "read back");
    }
  }

 private:
  // As a program would that uses its tensors on all its streams.
  void Order(Stream stream) {
    for (Stream other : {kStreamA, kStreamB, kStreamC}) {
      if (other != stream) fixture_.driver.StreamWaitsFor(stream, other);
    }
  }
  void Make(Bytes size, uint32_t pattern, Stream stream) {
    OpScope op(op_, "make");
    absl::StatusOr<DeviceAddr> at = fixture_.device->Allocate(size, stream, op_);
    if (!at.ok()) {
      ++refused_;
      return;
    }
    Tensor tensor;
    tensor.at = *at;
    tensor.size = size;
    tensor.pattern = pattern;
    fixture_.Write(*at, size, pattern, stream);
    tensors_.push_back(std::move(tensor));
  }
  void Read(Tensor& tensor, Stream stream) {
    Order(stream);
    OpScope op(op_, "read");
    if (fixture_.Touch({&tensor}, op_, stream).ok()) {
      fixture_.Check(tensor.at, tensor.size, tensor.pattern, stream, "read");
    } else {
      ++refused_;
      EXPECT_EQ(op_.size(), 0u);
    }
  }
  void Temporary() {
    OpScope op(op_, "temporary");
    absl::StatusOr<DeviceAddr> at = fixture_.device->Allocate(kLarge, kStreamA, op_);
    if (!at.ok()) {
      ++refused_;
      return;
    }
    fixture_.Write(*at, kLarge, 99, kStreamA);
    fixture_.Check(*at, kLarge, 99, kStreamA, "temporary");
    fixture_.Free(*at);
  }

  PagerFixture& fixture_;
  OpPins op_;
  std::vector<Tensor> tensors_, gone_;
  int refused_ = 0;
};

class PagerFaultTest : public ::testing::TestWithParam<absl::StatusCode> {};

TEST_P(PagerFaultTest, Scenario_NthCallFailsOnce_LosesNothing) {
  uint64_t nth = 1;
  for (uint64_t faults = 1; faults > 0; ++nth) {
    SCOPED_TRACE(::testing::Message() << "call " << nth);
    PagerFixture fixture(PageCount(6), PageCount(24));
    Scenario scenario(fixture);
    fixture.driver.PlanFault(Fault{.nth = nth, .status = absl::Status(GetParam(), "planned")});
    scenario.Run();
    faults = fixture.driver.faults();
    fixture.driver.ClearFault();
    EXPECT_TRUE(fixture.device->IsValid());
    fixture.device->EmptyCache();
    scenario.ReadAllBack();
    EXPECT_TRUE(fixture.device->IsValid());
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(nth, 50u);
}

TEST_P(PagerFaultTest, Scenario_AllCallsFailFromTheNth_IsToldAndValid) {
  uint64_t nth = 1;
  for (uint64_t faults = 1; faults > 0; ++nth) {
    SCOPED_TRACE(::testing::Message() << "call " << nth);
    PagerFixture fixture(PageCount(6), PageCount(24));
    Scenario scenario(fixture);
    fixture.driver.PlanFault(
        Fault{.nth = nth, .for_good = true, .status = absl::Status(GetParam(), "planned")});
    int refused = scenario.Run();
    faults = fixture.driver.faults();
    EXPECT_TRUE(nth > 1 || refused > 0);
    EXPECT_TRUE(fixture.device->IsValid());
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Statuses, PagerFaultTest,
                         ::testing::Values(absl::StatusCode::kInternal, absl::StatusCode::kResourceExhausted),
                         [](const auto& info) { return absl::StatusCodeToString(info.param); });

}  // namespace
}  // namespace weir
