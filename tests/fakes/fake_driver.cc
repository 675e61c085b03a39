#include "tests/fakes/fake_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace weir::fakes {

FakeDriver::FakeDriver(Config config)
    : memory_(config.physical), random_(config.seed), works_meanwhile_(config.seed != 0) {
  // As the product does (runtime.cc). Abseil's graph has a lock of its own that ThreadSanitizer does not know.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

FakeDriver::~FakeDriver() { FinishEverything(); }

// ---- plumbing

absl::Status FakeDriver::Reported(std::string misuse) {
  if (misuse.empty()) return absl::OkStatus();
  if (!misuse_expected_ && misuses_.size() < 20) ADD_FAILURE() << "misuse of the driver: " << misuse;
  misuses_.push_back(misuse);
  return absl::InvalidArgumentError(misuse);
}

absl::Status FakeDriver::BeginLocked(Call call) {
  CountCall();
  if (works_meanwhile_) timeline_.RunSome(static_cast<int>(random_() % 9), random_);
  absl::Status status = faults_.Next(call);
  if (!status.ok() && call == Call::kEnterContext) context_failed_ = true;
  return status;
}

absl::Status FakeDriver::BeginInContextLocked(Call call) {
  absl::Status status = BeginLocked(call);
  if (!status.ok() || contexts_entered_ > 0) return status;
  if (context_failed_) return absl::InternalError("no current context");
  return Reported("a call on streams, events or copies without a current context");
}

std::shared_ptr<Recording>* FakeDriver::EventLocked(Event event) {
  auto known = events_.find(reinterpret_cast<uintptr_t>(event.handle));
  if (known != events_.end()) return &known->second;
  (void)Reported("use of an event that does not exist, or no more");
  return nullptr;
}

void FakeDriver::RunWaitHook() {
  std::function<void()> hook;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    hook = wait_hook_;
  }
  if (hook) hook();
}

// ---- the job's side

void FakeDriver::RunKernel(Stream stream, const std::vector<DeviceRange>& reads,
                           const std::vector<DeviceRange>& writes, Kernel kernel) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Access> accesses;
  std::vector<KernelRange> read_ranges, written_ranges;
  for (bool write : {false, true}) {
    for (const DeviceRange& range : write ? writes : reads) {
      Access access{{}, write};
      if (!Reported(memory_.Resolve(range.at, range.size, &access.pieces)).ok()) return;
      (write ? written_ranges : read_ranges).emplace_back(access.pieces);
      accesses.push_back(std::move(access));
    }
  }
  (void)Reported(timeline_.Enqueue(
      stream, accesses,
      [kernel = std::move(kernel), read_ranges = std::move(read_ranges),
       written_ranges = std::move(written_ranges)] { kernel(read_ranges, written_ranges); }));
}

void FakeDriver::StreamWaitsFor(Stream waiter, Stream on) {
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_.Wait(waiter, timeline_.Record(on));
}

void FakeDriver::DestroyStream(Stream stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  destroyed_.insert(stream);
}

void FakeDriver::FinishEverything() {
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_.FinishAll();
}

// ---- the test's view

void FakeDriver::PlanFault(Fault fault) {
  std::lock_guard<std::mutex> lock(mutex_);
  faults_.Plan(std::move(fault));
}

void FakeDriver::ClearFault() {
  std::lock_guard<std::mutex> lock(mutex_);
  faults_.Clear();
}

uint64_t FakeDriver::faults() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return faults_.failed();
}

uint64_t FakeDriver::CountOf(Call call) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<uint64_t>(std::count(faults_.log().begin(), faults_.log().end(), call));
}

Bytes FakeDriver::frames() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return memory_.frames();
}

Bytes FakeDriver::peak_frames() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return memory_.peak_frames();
}

Bytes FakeDriver::host_memory() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return memory_.host();
}

void FakeDriver::SetFrameLimit(Bytes limit) {
  std::lock_guard<std::mutex> lock(mutex_);
  frame_limit_ = limit;
}

void FakeDriver::SetHostLimit(Bytes limit) {
  std::lock_guard<std::mutex> lock(mutex_);
  memory_.set_host_limit(limit);
}

bool FakeDriver::Granted(DeviceIndex device, DeviceAddr at) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return memory_.Granted(device, at);
}

bool FakeDriver::Mapped(DeviceAddr at) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return memory_.Mapped(at);
}

size_t FakeDriver::queued() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return timeline_.queued();
}

uint64_t FakeDriver::live_events() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return events_.size();
}

void FakeDriver::SetWaitHook(std::function<void()> hook) {
  std::lock_guard<std::mutex> lock(mutex_);
  wait_hook_ = std::move(hook);
}

void FakeDriver::ExpectMisuse() {
  std::lock_guard<std::mutex> lock(mutex_);
  misuse_expected_ = true;
}

std::vector<std::string> FakeDriver::misuses() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return misuses_;
}

// ---- kernels with known results

namespace {
uint64_t PatternWord(uint32_t pattern, uint64_t index) { return uint64_t{pattern} << 32 | index; }
}  // namespace

void WritePattern(FakeDriver& driver, Stream stream, DeviceRange range, uint32_t pattern) {
  driver.RunKernel(stream, {}, {range}, [pattern](const auto&, const std::vector<KernelRange>& writes) {
    writes[0].ForEach([pattern](uint64_t index, uint64_t& word) { word = PatternWord(pattern, index); });
  });
}

void CheckPattern(FakeDriver& driver, Stream stream, DeviceRange range, uint32_t pattern, std::string what) {
  driver.RunKernel(stream, {range}, {},
                   [pattern, what = std::move(what)](const std::vector<KernelRange>& reads, const auto&) {
                     uint64_t wrong = 0, first = 0, found = 0;
                     reads[0].ForEach([&](uint64_t index, uint64_t& word) {
                       if (word == PatternWord(pattern, index)) return;
                       if (wrong++ == 0) first = index, found = word;
                     });
                     EXPECT_EQ(wrong, 0u)
                         << what << ": wrong granules, the first is " << first << ", it holds 0x" << std::hex
                         << found << " instead of pattern 0x" << pattern;
                   });
}

}  // namespace weir::fakes
