#include "tools/weir_command/dryrun_command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/weir_command/dryrun_report.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/run_command.h"

namespace weir {
namespace {
namespace fs = std::filesystem;

// Of the CUDA context and the kernels that are loaded lazily, on a real card: 300 to 400 MB are seen
// (pytorch issues 107667, 109888).
constexpr char kContext[] = "400MiB";

// A folder of our own for as long as this lives.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string name = fs::temp_directory_path(error) / "weir-dryrun-XXXXXX";
    if (error || mkdtemp(name.data()) == nullptr)
      throw Failure(kExitFailed, absl::StrCat("cannot make a temporary folder (TMPDIR): ", strerror(errno)));
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::map<std::string, std::string> JobFlags(const DryRunRequest& request, const fs::path& folder) {
  const bool named = absl::StartsWith(request.gpu, "emulated");
  std::map<std::string, std::string> flags = {
      {"WEIR_GPU", named ? request.gpu : absl::StrCat("emulated:", request.gpu)},
      {"WEIR_BESIDE_REAL_GPU", "1"},  // who asks for a dry run means it
      {"WEIR_KERNELS", "none"},
      {"WEIR_EMULATED_VRAM", "profile"},
      {"WEIR_EMULATED_TIMING", "1"},
      {"WEIR_EMULATED_CONTEXT", kContext},
      {"WEIR_EMULATED_FIGURES", folder / "%p.figures"},
      {"WEIR_TRACE", folder / "%p.wtr"},
      {"WEIR_TRACE_SUMS", "0"},
      {"WEIR_DISABLE", "0"},
  };
  if (request.vram.empty()) {
    flags["WEIR_EMULATED_OVERCOMMIT"] = "1";
    flags["WEIR_WATCH_NATIVE"] = "1";
  } else {
    flags["WEIR_VRAM"] = request.vram;
  }
  return flags;
}

pid_t child = 0;  // set before the handler can run

void PassOn(int signal) { kill(child, signal); }

// What a terminal sends reaches the job by itself.
void SignalsWhileWaiting() {
  for (int number : {SIGINT, SIGQUIT}) signal(number, SIG_IGN);
  for (int number : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) signal(number, &PassOn);
}

// A mistake in a profile's name is told as the name was given.
void Prepare(const RunRequest& job, const Places& places) {
  try {
    PrepareJob(job, places);
  } catch (const Failure& failure) {
    throw Failure(failure.code(), absl::StrReplaceAll(failure.what(), {{"\"emulated:", "\""}}));
  }
}

// The job's exit code; 128 and the number of the signal that ended it.
int RunAndWait(const DryRunRequest& request) {
  child = fork();
  if (child < 0) throw Failure(kExitFailed, absl::StrCat("cannot start a process: ", strerror(errno)));
  if (child == 0) {
    try {
      if (request.output.json && request.output.file.empty()) SendOutputToStderr();
      BecomeJob(request.command);
    } catch (const Failure& failure) {
      fprintf(stderr, "weir dryrun: %s\n", failure.what());
      _exit(failure.code());
    }
  }
  SignalsWhileWaiting();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void WriteReport(const DryRunRequest& request, const DryRunResult& result) {
  if (request.output.json || !request.output.file.empty()) {
    request.output.Write(request.output.json ? DryRunAsJson(result) : DryRunAsText(result));
  } else {
    fputs(DryRunAsText(result).c_str(), stderr);
  }
}

}  // namespace

int DryRun(const DryRunRequest& request, const Places& places) {
  if (request.command.empty())
    throw Failure(kExitUsage, "no command: weir dryrun [OPTION...] [--] COMMAND [ARGUMENT...]");
  const Folder folder;
  RunRequest job;
  job.command = request.command;
  job.flags = JobFlags(request, folder.path());
  Prepare(job, places);
  const int code = RunAndWait(request);
  std::optional<DryRunResult> result = ReadDryRun(folder.path());
  if (!result.has_value()) {
    if (code != 0) return code;  // it has said why
    throw Failure(kExitFailed, "the command has not used the card: there is nothing to tell");
  }
  result->gpu = request.gpu;
  result->vram = request.vram;
  result->job_code = code;
  WriteReport(request, *result);
  if (!result->fits() && (code == 0 || result->refused > 0)) return kExitDoesNotFit;
  return code;
}

}  // namespace weir
