// Which driver call fails, and the record of all calls. The unit of a plan is the call: `the 3rd Map, once`.
// Not synchronised: guarded by the fake driver's mutex.
#ifndef WEIR_TESTS_FAKES_FAULT_PLAN_H_
#define WEIR_TESTS_FAKES_FAULT_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace weir::fakes {

enum class Call {
  kMemoryInfo,
  kSupportsVirtualMemory,
  kEnterContext,
  kSynchronizeContext,
  kReserveAddresses,
  kCreateFrame,
  kReleaseFrame,
  kMap,
  kSetAccess,
  kUnmap,
  kHostAlloc,
  kHostFree,
  kCopyToHost,
  kCopyToDevice,
  kCreateEvent,
  kDestroyEvent,
  kRecordEvent,
  kQueryEvent,
  kSynchronizeEvent,
  kWaitEvent,
};

struct Fault {
  std::optional<Call> call = std::nullopt;  // empty: any
  uint64_t nth = 1;                         // counted from the moment the fault is planned
  bool for_good = false;                    // this call and all later ones of its kind
  absl::Status status = absl::InternalError("planned fault");
};

class FaultPlan {
 public:
  void Plan(Fault fault) {
    fault_ = std::move(fault);
    seen_ = failed_ = 0;
  }
  void Clear() { fault_.reset(); }
  // What this call returns; OK: let it happen.
  absl::Status Next(Call call) {
    log_.push_back(call);
    if (!fault_.has_value() || (fault_->call.has_value() && *fault_->call != call)) return absl::OkStatus();
    ++seen_;
    if (fault_->for_good ? seen_ < fault_->nth : seen_ != fault_->nth) return absl::OkStatus();
    ++failed_;
    return fault_->status;
  }
  uint64_t failed() const { return failed_; }  // since the plan was made
  const std::vector<Call>& log() const { return log_; }

 private:
  std::optional<Fault> fault_;
  uint64_t seen_ = 0, failed_ = 0;
  std::vector<Call> log_;
};

}  // namespace weir::fakes

#endif  // WEIR_TESTS_FAKES_FAULT_PLAN_H_
