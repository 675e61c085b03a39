// A CUDA driver without a GPU, for the tests of the core: memory that holds bytes (fake_memory.h), streams
// that run as late as they may (fake_timeline.h), calls that fail by plan (fault_plan.h), and no tolerance:
// whatever a real driver would answer with a crash, a wrong byte or a hang one day in a month is a failed
// test here, at once.
//
// What is misuse: unmapping or freeing memory that a stream may still use, unmapping a part of a mapping,
// mapping over a mapping or one frame twice, releasing a mapped frame, touching an unmapped range, two
// accesses that nothing orders, using a destroyed event, a call that needs a context without one, more frames
// than the frame limit. Each is a gtest failure and is kept in misuses(); a test that wants one calls
// ExpectMisuse() first.
//
// Any thread may call anything; kernels run under the fake's mutex and must not call it.
#ifndef WEIR_TESTS_FAKES_FAKE_DRIVER_H_
#define WEIR_TESTS_FAKES_FAKE_DRIVER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "allocator/cuda/driver.h"
#include "tests/fakes/fake_memory.h"
#include "tests/fakes/fake_timeline.h"
#include "tests/fakes/fault_plan.h"

namespace weir::fakes {

// The granules that a kernel works on, by their index within the range it named.
class KernelRange {
 public:
  explicit KernelRange(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  // visit(index, word), in address order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    uint64_t index = 0;
    for (const Piece& piece : pieces_) {
      for (uint64_t i = 0; i < piece.count; ++i) visit(index++, piece.region->Word(piece.first + i));
    }
  }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::vector<Piece> pieces_;
};

struct DeviceRange {
  DeviceAddr at;
  Bytes size;
};

class FakeDriver final : public Driver {
 public:
  struct Config {
    Bytes physical = GiB(1);  // CreateFrame beyond it is RESOURCE_EXHAUSTED
    // Zero: streams run as late as they may, and a query never moves one. Else the seed of a device that
    // works while the host looks away: at every call up to eight tasks of any streams run.
    uint64_t seed = 0;
  };
  FakeDriver() : FakeDriver(Config{}) {}
  explicit FakeDriver(Config config);
  ~FakeDriver() override;

  // ---- what the job does; no driver call of the core
  // Queues a kernel that reads and writes the given ranges, which must be mapped.
  using Kernel =
      std::function<void(const std::vector<KernelRange>& reads, const std::vector<KernelRange>& writes)>;
  void RunKernel(Stream stream, const std::vector<DeviceRange>& reads, const std::vector<DeviceRange>& writes,
                 Kernel kernel);
  // `waiter` waits for everything queued on `on` so far, as `waiter.wait_stream(on)` does.
  void StreamWaitsFor(Stream waiter, Stream on);
  // The job destroys a stream: its work goes on, recording on it is INVALID_ARGUMENT.
  void DestroyStream(Stream stream);
  void FinishEverything();

  // ---- the test's view
  void PlanFault(Fault fault);
  void ClearFault();
  uint64_t faults() const;            // calls that failed by plan since it was made
  uint64_t CountOf(Call call) const;  // calls so far
  Bytes frames() const;               // physical memory held
  Bytes peak_frames() const;
  Bytes host_memory() const;        // pinned memory held
  void SetFrameLimit(Bytes limit);  // more is misuse
  void SetHostLimit(Bytes limit);   // HostAlloc beyond it is RESOURCE_EXHAUSTED
  bool Mapped(DeviceAddr at) const;
  bool Granted(DeviceIndex device, DeviceAddr at) const;
  size_t queued() const;  // tasks that have not run
  uint64_t live_events() const;
  // Called, with no lock of the fake held, at each call that waits for the device, before it does.
  void SetWaitHook(std::function<void()> hook);
  void ExpectMisuse();
  std::vector<std::string> misuses() const;

  // ---- Driver
  absl::StatusOr<DeviceMemory> MemoryInfo(DeviceIndex device) override;
  absl::StatusOr<bool> SupportsVirtualMemory(DeviceIndex device) override;
  absl::Status EnterContext(DeviceIndex device) override;
  void LeaveContext() override;
  absl::Status SynchronizeContext() override;
  absl::StatusOr<DeviceAddr> ReserveAddresses(Bytes size) override;
  absl::StatusOr<FrameHandle> CreateFrame(DeviceIndex device, Bytes size) override;
  absl::Status ReleaseFrame(FrameHandle frame) override;
  absl::Status Map(DeviceAddr at, Bytes size, FrameHandle frame) override;
  absl::Status SetAccess(absl::Span<const DeviceIndex> devices, DeviceAddr at, Bytes size) override;
  absl::Status Unmap(DeviceAddr at, Bytes size) override;
  absl::StatusOr<void*> HostAlloc(Bytes size) override;
  absl::Status HostFree(void* memory) override;
  absl::Status CopyToHost(void* to, DeviceAddr from, Bytes size, Stream stream) override;
  absl::Status CopyToDevice(DeviceAddr to, const void* from, Bytes size, Stream stream) override;
  absl::StatusOr<Event> CreateEvent() override;
  absl::Status DestroyEvent(Event event) override;
  absl::Status RecordEvent(Event event, Stream stream) override;
  absl::StatusOr<bool> QueryEvent(Event event) override;
  absl::Status SynchronizeEvent(Event event) override;
  absl::Status WaitEvent(Stream stream, Event event) override;

 private:
  // A call begins: counts it, lets the device work, and fails it if planned.
  absl::Status BeginLocked(Call call);
  absl::Status BeginInContextLocked(Call call);
  // INVALID_ARGUMENT after reporting it, or OK for the empty sentence.
  absl::Status Reported(std::string misuse);
  std::shared_ptr<Recording>* EventLocked(Event event);
  void RunWaitHook();
  absl::Status CopyLocked(std::vector<Piece> from, std::vector<Piece> to, Stream stream);

  static thread_local int contexts_entered_;  // of this thread, all fakes

  mutable std::mutex mutex_;
  FakeMemory memory_;
  FakeTimeline timeline_;
  FaultPlan faults_;
  std::mt19937_64 random_;
  const bool works_meanwhile_;
  Bytes frame_limit_ = Bytes::Max();
  uint64_t next_event_ = 1;
  std::map<uint64_t, std::shared_ptr<Recording>> events_;  // null: never recorded
  std::set<Stream> destroyed_;
  std::function<void()> wait_hook_;
  bool misuse_expected_ = false;
  bool context_failed_ = false;  // a planned fault: calls without a context are then no misuse
  std::vector<std::string> misuses_;
};

// ---- kernels with known results. A pattern is a number that each granule of a range holds together with its
// index. Writes `pattern` (not zero) to the range.
void WritePattern(FakeDriver& driver, Stream stream, DeviceRange range, uint32_t pattern);
// Queues a kernel that fails the test, with `what`, if the range does not hold `pattern` when it runs.
void CheckPattern(FakeDriver& driver, Stream stream, DeviceRange range, uint32_t pattern, std::string what);

}  // namespace weir::fakes

#endif  // WEIR_TESTS_FAKES_FAKE_DRIVER_H_
