// What a dry run has left in its folder, as figures, as text and as JSON.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DRYRUN_REPORT_H_
#define WEIR_TOOLS_WEIR_COMMAND_DRYRUN_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trace/tensor_classes.h"

namespace weir {

// Of the process that needed most; bytes, and ns of the virtual clock.
struct DryRunResult {
  // What was asked for, and how the job ended.
  std::string gpu;   // the profile
  std::string vram;  // the cap; empty: without Weir
  int job_code = 0;

  uint64_t process = 0;
  uint64_t processes = 0;                          // that used the card
  uint64_t peak_allocated = 0, peak_reserved = 0;  // as the allocator counts
  uint64_t peak_asked = 0;                         // the most that was asked for and not given back
  trace::BytesByClass classes{};                   // of peak_asked
  uint64_t refused = 0;                            // allocations and ops that ended in an OutOfMemoryError

  // The emulated card's; the exit is missing where the process was killed.
  bool ended = false;
  std::string device_name;
  uint64_t vram_bytes = 0, context_bytes = 0;
  uint64_t card_peak = 0;  // what all processes had of the fullest card: all memory, contexts too
  uint64_t granted_beyond = 0;
  uint64_t reports = 0;
  uint64_t steps = 0, step_ns = 0, total_ns = 0;
  std::string values;  // "exact", "exact-unless-floats-decide" or "estimate": docs/computed-values.md
  std::vector<std::string> value_reads;  // "aten::nonzero at train.py:61": what makes it so

  // The size of a card that would do.
  uint64_t needed() const;
  bool fits() const;
};

// None: no process has used the card.
std::optional<DryRunResult> ReadDryRun(const std::filesystem::path& folder);

std::string DryRunAsText(const DryRunResult& result);
std::string DryRunAsJson(const DryRunResult& result);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DRYRUN_REPORT_H_
