#include "offload/ram_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "allocator/base/log.h"
#include "allocator/base/size_text.h"

namespace weir {
namespace {

// Left to the job and the system when the machine's memory ends before the budget.
constexpr Bytes kReserve = MiB(128);

}  // namespace

RamBudget::RamBudget(Config config, std::unique_ptr<RamLedger> ledger, RamLedger::Kind kind)
    : config_(config), kind_(kind), ledger_(std::move(ledger)) {
  config_.most = config_.most.RoundedDownTo(kPageBytes);
}

RamBudget::State RamBudget::StateLocked() {
  if (ledger_ == nullptr) return State{config_.most, SaturatingSubtract(config_.most, taken_)};
  const RamLedger::Sum sum = ledger_->Total();
  Bytes limit = config_.most;
  if (kind_ == RamLedger::Kind::kAuto)
    limit = limit / static_cast<uint64_t>(std::max({config_.local_ranks, sum.processes, 1}));
  limit = limit.RoundedDownTo(kPageBytes);
  const Bytes left =
      std::min(SaturatingSubtract(limit, taken_), SaturatingSubtract(config_.most, sum.pinned));
  return State{limit, left};
}

absl::Status RamBudget::Take(Bytes bytes) {
  LockHolder lock(&mutex_);
  const State state = StateLocked();
  if (state.left < bytes || (ledger_ != nullptr && !ledger_->Add(bytes, config_.most))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the RAM budget is used up (WEIR_RAM=", FormatBytes(state.limit), ", ", FormatBytes(taken_),
        " pinned", ledger_ != nullptr ? " by this process, and it shares with others" : "", ")"));
  }
  if (config_.host != nullptr) {
    const absl::StatusOr<HostMemory> host = config_.host();
    if (host.ok() && host->available < bytes + kReserve) {
      if (ledger_ != nullptr) ledger_->Remove(bytes);
      return absl::ResourceExhaustedError(absl::StrCat("only ", FormatBytes(host->available),
                                                       " of RAM are left (", host->limited_by, "), ",
                                                       FormatBytes(taken_), " pinned"));
    }
  }
  taken_ += bytes;
  return absl::OkStatus();
}

void RamBudget::Return(Bytes bytes) {
  LockHolder lock(&mutex_);
  taken_ -= bytes;
  if (ledger_ != nullptr) ledger_->Remove(bytes);
}

Bytes RamBudget::limit() {
  LockHolder lock(&mutex_);
  return StateLocked().limit;
}

Bytes RamBudget::left() {
  LockHolder lock(&mutex_);
  return StateLocked().left;
}

void RamBudget::Leave() {
  // In a forked child the lock may be one that nobody will release.
  if (ledger_ == nullptr || !ledger_->IsOurs()) return;
  LockHolder lock(&mutex_);
  ledger_->Leave();
}

namespace {

std::unique_ptr<RamBudget> Alone(RamBudget::Config config, LogLevel level, const absl::Status& why) {
  config.most = config.most / static_cast<uint64_t>(std::max(config.local_ranks, 1));
  auto budget = std::make_unique<RamBudget>(config);
  Log(level, "WEIR_RAM cannot be shared with other processes: ", why.message(), "; this one may use ",
      FormatBytes(budget->limit()));
  return budget;
}

}  // namespace

std::unique_ptr<RamBudget> ShareRam(RamBudget::Config config, const std::string& scope) {
  auto ledger = RamLedger::Open(RamLedger::Kind::kNode, scope);
  if (!ledger.ok()) return Alone(config, LogLevel::kWarn, ledger.status());
  return std::make_unique<RamBudget>(config, *std::move(ledger), RamLedger::Kind::kNode);
}

std::unique_ptr<RamBudget> ShareDefaultRam(RamBudget::Config config, Bytes available,
                                           const std::string& scope) {
  auto ledger = RamLedger::Open(RamLedger::Kind::kAuto, scope);
  config.most = DefaultRamBudget(available, 1);
  if (!ledger.ok()) return Alone(config, LogLevel::kInfo, ledger.status());
  if (config.host != nullptr) config.most = DefaultRamBudget(available + (*ledger)->Total().pinned, 1);
  return std::make_unique<RamBudget>(config, *std::move(ledger), RamLedger::Kind::kAuto);
}

}  // namespace weir
