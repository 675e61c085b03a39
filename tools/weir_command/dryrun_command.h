// `weir dryrun`: runs a job on an emulated card whose kernels do nothing, waits for it, and tells what it would need of the
// real card: docs/dryrun.md. The card lends what it does not have, so that the job gets to its peak.
#ifndef WEIR_TOOLS_WEIR_COMMAND_DRYRUN_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_DRYRUN_COMMAND_H_

#include <string>
#include <vector>

#include "tools/weir_command/output.h"
#include "tools/weir_command/places.h"

namespace weir {

struct DryRunRequest {
  std::string gpu = "h200";  // a profile, or the path of one
  std::string vram;          // the cap, as of WEIR_VRAM; empty: without Weir
  std::vector<std::string> command;
  OutputOptions output;
};

// The exit code of the command: kExitDoesNotFit, or the job's own (128 and the signal that ended it). Throws Failure with
// nothing started, or when the job has not used the card.
int DryRun(const DryRunRequest& request, const Places& places);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_DRYRUN_COMMAND_H_
