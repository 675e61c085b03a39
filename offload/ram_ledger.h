// How much host memory the Weir processes of a user have pinned on this machine, in a file in shared memory: for budgets
// that they share. A process holds a lock on its entry, which the system drops when it dies, so that what a killed process had
// pinned no longer counts; a forked child has no entry.
//
// Threads: the caller's lock (RamBudget). Calls may wait for other processes that are in a call here, microseconds each.
// The last process to leave removes the file; one that killed processes left is used, or removed, by the next.
#ifndef WEIR_OFFLOAD_RAM_LEDGER_H_
#define WEIR_OFFLOAD_RAM_LEDGER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"

namespace weir {

class RamLedger {
 public:
  // Only entries of one kind are counted together.
  enum class Kind : uint32_t { kUnused = 0, kAuto = 1, kNode = 2 };

  // `scope`: processes with another one are on another machine (an emulated host); letters, digits and hyphens. FAILED_PRECONDITION:
  // no shared memory, or a file that is not ours.
  static absl::StatusOr<std::unique_ptr<RamLedger>> Open(Kind kind, const std::string& scope,
                                                         const std::string& folder = "/dev/shm");
  ~RamLedger();  // Leave()
  RamLedger(const RamLedger&) = delete;
  RamLedger& operator=(const RamLedger&) = delete;

  struct Sum {
    Bytes pinned;  // by all processes, this one included
    int processes = 0;
  };
  // Of the processes of this kind that are alive.
  Sum Total();
  // Counts `more` for this process, unless the sum would exceed `limit`: false.
  bool Add(Bytes more, Bytes limit);
  void Remove(Bytes less);
  // False in a forked child, whose parent has the entry.
  bool IsOurs() const;
  // The process has no entry any more. Idempotent; in a forked child it does nothing.
  void Leave();

 private:
  struct Table;
  class Guard;
  RamLedger(int file, std::string path, Table* table, Kind kind);
  bool TakeSlot();
  Sum SumLocked();
  static void RemoveLeftOver(const std::string& folder, const std::string& prefix);

  const int file_;
  const std::string path_;
  Table* const table_;
  const Kind kind_;
  const pid_t owner_;
  int slot_ = -1;
};

}  // namespace weir

#endif  // WEIR_OFFLOAD_RAM_LEDGER_H_
