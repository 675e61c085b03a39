// `weir run`: validates, sets the environment, and becomes the job (execve: same process, signals and exit
// code its own).
#ifndef WEIR_TOOLS_WEIR_COMMAND_RUN_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_RUN_COMMAND_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/options.h"
#include "tools/weir_command/job_command.h"
#include "tools/weir_command/output.h"
#include "tools/weir_command/places.h"

namespace weir {

struct RunRequest {
  std::map<std::string, std::string> flags;  // by option name (`WEIR_VRAM`), as given
  std::vector<std::string> command;
  OutputOptions output;
};

// How the arguments after `run` divide: flags first, then the command, with an optional `--` between. Throws
// Failure(kExitUsage) if the last flag lacks its value; that the flags exist is checked by the parser.
struct RunArguments {
  std::vector<std::string> flags;
  std::vector<std::string> command;
};
RunArguments SplitRunArguments(const std::vector<std::string>& arguments);

// LD_PRELOAD of the job: Weir's libraries first, then what the user had, less older copies of Weir's.
std::string JobPreload(const std::vector<std::string>& ours, const std::string& user);

// Throws Failure(kExitUsage) if the environment names an allocator of torch that Weir cannot take the place of.
void RefuseOtherAllocators();

// What is known of a job that can be started.
struct PreparedJob {
  OptionTexts texts;
  std::optional<TorchFound> torch;
};
// Validates, and gives this process the environment of the job. Throws Failure with nothing changed.
PreparedJob PrepareJob(const RunRequest& request, const Places& places);
// What this process prints on stdout from now on goes to stderr: stdout is for the result.
void SendOutputToStderr();
// This process becomes the command. Throws Failure if it cannot be executed.
[[noreturn]] void BecomeJob(const std::vector<std::string>& command);

// Starts the job. Returns only by throwing Failure, with nothing started.
[[noreturn]] void RunJob(const RunRequest& request, const Places& places);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_RUN_COMMAND_H_
