// How much host memory this process may pin as the RAM tier, for all of its devices together, and with a shared budget for all
// processes of the user on this machine.
//
// Threads: any; own synchronisation (LockRank::kRamBudget). Bytes pinned are counted, not bytes requested.
#ifndef WEIR_OFFLOAD_RAM_BUDGET_H_
#define WEIR_OFFLOAD_RAM_BUDGET_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "allocator/base/lock_ranks.h"
#include "allocator/base/units.h"
#include "offload/host_memory.h"
#include "offload/ram_ledger.h"

namespace weir {

class RamBudget {
 public:
  // What is left of the machine's memory, asked before each pin; an error is no limit.
  using Host = absl::StatusOr<HostMemory> (*)();

  struct Config {
    Bytes most{};  // that the processes of `ledger` may pin together; without one, that this process may
    int local_ranks =
        1;  // kAuto: each gets its part of `most`, of as many parts as there are ranks or processes
    bool several_stores = false;
    Host host = nullptr;  // null: not asked
  };
  explicit RamBudget(Config config, std::unique_ptr<RamLedger> ledger = nullptr,
                     RamLedger::Kind kind = RamLedger::Kind::kNode);

  // RESOURCE_EXHAUSTED: over the budget, or the machine has not that much left; says which.
  absl::Status Take(Bytes bytes);
  void Return(Bytes bytes);

  Bytes limit();  // what this process may pin now
  Bytes left();   // of that
  // Others take from it too: nobody should hold much more than it needs.
  bool IsShared() const { return config_.several_stores || ledger_ != nullptr; }
  // The process ends.
  void Leave();

 private:
  struct State {
    Bytes limit, left;
  };
  State StateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Config config_;  // constant after construction
  const RamLedger::Kind kind_;
  RankedMutex mutex_{LockRank::kRamBudget};
  const std::unique_ptr<RamLedger> ledger_;  // null: this process alone
  Bytes taken_ ABSL_GUARDED_BY(mutex_);
};

// `config.most` bytes shared by the user's processes on this machine. Both functions: `scope` as RamLedger has it; where there
// is no shared memory the budget is divided by the local ranks, and the log says so.
std::unique_ptr<RamBudget> ShareRam(RamBudget::Config config, const std::string& scope);

// The default budget: half of the host's memory of which `available` is left, divided among the local ranks or the user's
// Weir processes. What others of these have pinned is no longer in `available`, and counts as if it were.
std::unique_ptr<RamBudget> ShareDefaultRam(RamBudget::Config config, Bytes available,
                                           const std::string& scope);

}  // namespace weir

#endif  // WEIR_OFFLOAD_RAM_BUDGET_H_
