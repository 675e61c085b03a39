#include "tools/weir_command/run_command.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "allocator/base/option_table.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/job_command.h"
#include "tools/weir_command/real_gpu.h"
#include "tools/weir_command/shared_cards.h"

namespace weir {
namespace {

bool IsSwitch(const OptionRow& row) { return absl::string_view(row.type) == "switch"; }

bool TakesValue(const std::string& flag) {
  if (flag == "-o") return true;
  for (const OptionRow& row : OptionTable()) {
    if (flag == row.flag) return !IsSwitch(row);
  }
  return false;
}

// The options of the job: the environment, then the flags over it.
Options ReadJobOptions(const RunRequest& request, OptionTexts* texts) {
  *texts = ReadEnvironment();
  for (const UnknownOption& unknown : FindUnknownOptions(*texts))
    throw Failure(kExitUsage, unknown.Message());
  for (const auto& [name, text] : request.flags) {
    const OptionRow* row = FindOption(name);
    Options scratch;
    const absl::Status status = row->read(text, &scratch);
    if (!status.ok()) throw Failure(kExitUsage, absl::StrCat(row->flag, ": ", status.message()));
    (*texts)[name] = text;
  }
  (*texts)["WEIR_REQUIRED"] = "1";
  const absl::StatusOr<Options> options = ParseOptions(*texts);
  if (!options.ok()) throw Failure(kExitUsage, std::string(options.status().message()));
  for (const char* name : {"WEIR_KERNELS", "WEIR_EMULATED_VRAM", "WEIR_EMULATED_REPORTS",
                           "WEIR_EMULATED_TIMING", "WEIR_EMULATED_FAULTS"}) {
    if (request.flags.contains(name) && !options->gpu.emulated) {
      throw Failure(kExitUsage, absl::StrCat(FindOption(name)->flag, " needs --gpu emulated"));
    }
  }
  return *options;
}

void RequireGpu(const Options& options) {
  if (options.gpu.emulated || options.disable) return;
  const std::string why = WhyNoRealGpu();
  if (why.empty()) return;
  throw Failure(kExitUnavailable,
                absl::StrCat(why, "; to try the job without a GPU: weir run --gpu emulated -- COMMAND"));
}

// As the emulated GPU finds it (preload/resolve.c): nothing of the driver is loaded.
void RefuseToHideRealGpu(const Options& options, const OptionTexts& texts) {
  if (!options.gpu.emulated || options.beside_real_gpu) return;
  const auto given = texts.find("WEIR_EMULATED_REAL_DRIVER");
  const std::string path = given == texts.end() ? "/proc/driver/nvidia/version" : given->second;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  throw Failure(kExitUsage,
                absl::StrCat("--gpu emulated would hide the real GPU of this machine from the job (", path,
                             "); if that is meant, add --beside-real-gpu"));
}

// The emulated GPU reads `value` of `flag`; `function` of it says whether it can.
void RequireReadable(const char* flag, const std::string& value, const char* function, const Places& places) {
  using Check = int (*)(const char* value, char* text, size_t room);
  const std::string library = places.EmulatedDriver();
  void* driver = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* check = driver == nullptr ? nullptr : dlsym(driver, function);
  if (check == nullptr) {
    throw Failure(kExitUnavailable, absl::StrCat(library, " has no ", function,
                                                 ": install or build Weir again (docs/install.md)"));
  }
  char text[2048];
  if (reinterpret_cast<Check>(check)(value.c_str(), text, sizeof text) != 0)
    throw Failure(kExitUsage, absl::StrCat(flag, ": ", text));
}

// A plan or a profile that cannot be read must not start a job that then runs without it. The job may change its folder
// before the emulated GPU reads the profile.
void RequireEmulatedFiles(const Options& options, const Places& places, OptionTexts* texts) {
  if (!options.gpu.emulated) return;
  if (!options.emulated_faults.empty())
    RequireReadable("--faults", options.emulated_faults, "weir_emulated_check_faults", places);
  if (!absl::StrContains(options.gpu.profile, "/")) return;
  RequireReadable("--gpu", options.gpu.profile, "weir_emulated_check_profile", places);
  (*texts)["WEIR_GPU"] =
      absl::StrCat("emulated:", std::filesystem::absolute(options.gpu.profile).lexically_normal().string());
}

// What was decided, for --json: nothing in it differs from one run to the next.
std::string PlanAsJson(const PreparedJob& job) {
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  for (const OptionRow& row : OptionTable()) {
    if (row.internal) continue;
    const auto found = job.texts.find(row.name);
    options[row.name] = found == job.texts.end() || found->second.empty() ? row.preset : found->second;
  }
  nlohmann::ordered_json plan = {{"options", options}, {"torch", nullptr}};
  if (job.torch && !job.torch->version.empty()) plan["torch"] = job.torch->version;
  return plan.dump(2) + "\n";
}

void SetJobEnvironment(const OptionTexts& texts, const Options& options, const Places& places) {
  std::vector<std::string> ours = {places.Preload()};
  if (options.gpu.emulated) {
    ours.push_back(places.EmulatedGpu());
    setenv("WEIR_EMULATED_CHOSEN", "1", 1);
  }
  setenv("LD_PRELOAD", JobPreload(ours, EnvironmentText("LD_PRELOAD").value_or("")).c_str(), 1);
  for (const auto& [name, text] : texts) {
    // A default is left out: what reads the environment without the table need not know how a default is
    // written.
    if (text == FindOption(name)->preset) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), text.c_str(), 1);
    }
  }
  if (!options.gpu.emulated) return;
  setenv("WEIR_EMULATED_SHARED", NewSharedName().c_str(), 1);
  // Triton links what it compiles with libcuda.so.1, which it looks for where drivers are installed.
  setenv("TRITON_LIBCUDA_PATH", places.EmulatedDriver().parent_path().c_str(), 0);
}

}  // namespace

[[noreturn]] void BecomeJob(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Failure(errno == ENOENT ? kExitNotFound : kExitNotExecutable,
                absl::StrCat(command[0], ": ", strerror(errno)));
}

void SendOutputToStderr() {
  if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw Failure(kExitFailed, absl::StrCat("cannot send the job's output to stderr: ", strerror(errno)));
}

void RefuseOtherAllocators() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const std::string text = EnvironmentText(name).value_or("");
    for (absl::string_view setting : absl::StrSplit(text, ',')) {
      const std::vector<absl::string_view> parts = absl::StrSplit(setting, ':');
      if (parts.size() != 2 || absl::StripAsciiWhitespace(parts[0]) != "backend") continue;
      if (absl::StripAsciiWhitespace(parts[1]) == "cudaMallocAsync") {
        throw Failure(kExitUsage,
                      absl::StrCat(name, "=", text,
                                   ": Weir takes the place of torch's allocator and cannot do so "
                                   "with backend:cudaMallocAsync; unset it, or use backend:native"));
      }
    }
  }
}

RunArguments SplitRunArguments(const std::vector<std::string>& arguments) {
  size_t i = 0;
  while (i < arguments.size() && absl::StartsWith(arguments[i], "-") && arguments[i] != "--") {
    if (absl::EndsWith(arguments[i], "="))
      throw Failure(kExitUsage, absl::StrCat(arguments[i], " needs a value"));
    if (!TakesValue(arguments[i++])) continue;
    if (i == arguments.size()) throw Failure(kExitUsage, absl::StrCat(arguments.back(), " needs a value"));
    ++i;
  }
  RunArguments split;
  split.flags.assign(arguments.begin(), arguments.begin() + static_cast<ptrdiff_t>(i));
  if (i < arguments.size() && arguments[i] == "--") ++i;
  split.command.assign(arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
  return split;
}

std::string JobPreload(const std::vector<std::string>& ours, const std::string& user) {
  std::vector<std::string> all = ours;
  for (absl::string_view entry : absl::StrSplit(user, absl::ByAnyChar(" :"), absl::SkipEmpty())) {
    const std::string file = std::filesystem::path(std::string(entry)).filename();
    if (file != "libweir_preload.so" && file != "libweir_emulated_gpu.so") all.emplace_back(entry);
  }
  return absl::StrJoin(all, ":");
}

PreparedJob PrepareJob(const RunRequest& request, const Places& places) {
  OptionTexts texts;
  const Options options = ReadJobOptions(request, &texts);
  RefuseOtherAllocators();
  const std::filesystem::path command = FindCommand(request.command[0]);
  places.RequireParts(options);
  RequireEmulatedFiles(options, places, &texts);
  RefuseToHideRealGpu(options, texts);
  RequireGpu(options);
  const std::optional<TorchFound> torch = FindTorchOf(command);
  if (!options.disable) RequireWorkingTorch(torch, places.TorchVersions());
  SetJobEnvironment(texts, options, places);
  return {std::move(texts), torch};
}

void RunJob(const RunRequest& request, const Places& places) {
  if (request.command.empty())
    throw Failure(kExitUsage, "no command: weir run [OPTION...] [--] COMMAND [ARGUMENT...]");
  const PreparedJob job = PrepareJob(request, places);
  if (request.output.json || !request.output.file.empty()) {
    request.output.Write(PlanAsJson(job));
    if (request.output.file.empty()) SendOutputToStderr();
  }
  BecomeJob(request.command);
}

}  // namespace weir
