// The command that `weir run` starts: found as a shell would find it, and looked at to learn which torch it
// will load.
#ifndef WEIR_TOOLS_WEIR_COMMAND_JOB_COMMAND_H_
#define WEIR_TOOLS_WEIR_COMMAND_JOB_COMMAND_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir {

// The file that `name` stands for: itself if it has a slash, else the first executable of PATH. Throws
// Failure(kExitNotFound) or Failure(kExitNotExecutable).
std::filesystem::path FindCommand(const std::string& name);

// What is known of the torch of a job before it starts.
struct TorchFound {
  std::string version;  // "2.15.0+cu130"; empty if it cannot be told
  bool has_cuda = true;
};

// The torch that `command` will load, when it is a Python interpreter, a script that starts one, or an
// executable linked with libtorch. Nothing is imported and CUDA is not touched. Empty when it cannot be known
// (shell scripts, no torch).
std::optional<TorchFound> FindTorchOf(const std::filesystem::path& command);

// Throws Failure(kExitUnavailable) if `torch` is known not to work, naming the versions that do.
void RequireWorkingTorch(const std::optional<TorchFound>& torch,
                         const std::vector<std::string>& working_versions);

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_JOB_COMMAND_H_
