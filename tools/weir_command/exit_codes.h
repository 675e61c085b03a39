// The exit codes of the `weir` command, the same for every subcommand. `weir run` ends with the job's own
// code once the job has started.
#ifndef WEIR_TOOLS_WEIR_COMMAND_EXIT_CODES_H_
#define WEIR_TOOLS_WEIR_COMMAND_EXIT_CODES_H_

namespace weir {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitDoesNotFit = 3,
  kExitUnavailable = 4,      // no driver, unknown or CPU-only torch, a part of Weir is missing
  kExitNotExecutable = 126,  // as shells do
  kExitNotFound = 127,
};

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_EXIT_CODES_H_
