// The `weir` command: weir run | dryrun | config | doctor | path | trace. README.md says what each does.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "allocator/base/option_table.h"
#include "allocator/base/options.h"
#include "tools/weir_command/config_command.h"
#include "tools/weir_command/doctor_command.h"
#include "tools/weir_command/dryrun_command.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/output.h"
#include "tools/weir_command/places.h"
#include "tools/weir_command/run_command.h"
#include "tools/weir_command/trace_command.h"

namespace weir {
namespace {

constexpr char kVersion[] = WEIR_VERSION;

class CommandLine {
 public:
  CommandLine() : app_("Weir keeps a PyTorch job under a VRAM cap.", "weir") {
    app_.add_flag("--version", version_, "Print the version.");
    output_.AddTo(&app_);
    AddRun();
    AddDryRun();
    AddConfig();
    AddDoctor();
    AddPath();
    AddTrace();
    app_.footer(
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 does not fit, 4 Weir unavailable; under `run`, the job's "
        "own.");
  }

  int Run(std::vector<std::string> arguments) {
    if (!arguments.empty() && (arguments[0] == "run" || arguments[0] == "dryrun")) {
      const RunArguments split = SplitRunArguments({arguments.begin() + 1, arguments.end()});
      (arguments[0] == "run" ? request_.command : dryrun_request_.command) = split.command;
      arguments.resize(1);
      arguments.insert(arguments.end(), split.flags.begin(), split.flags.end());
    }
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    try {
      app_.parse(arguments);
    } catch (const CLI::CallForHelp& help) {
      return app_.exit(help);
    } catch (const CLI::ParseError& error) {
      throw Failure(kExitUsage, error.what());
    }
    return Dispatch();
  }

  // "weir" or "weir run", for messages.
  std::string Name() const {
    const std::vector<CLI::App*> used = app_.get_subcommands();
    return used.empty() ? "weir" : absl::StrCat("weir ", used[0]->get_name());
  }

 private:
  void AddRun() {
    run_ = app_.add_subcommand("run", "Run a job under Weir.");
    run_->footer(
        "weir run [OPTION...] [--] COMMAND [ARGUMENT...]: the first word that is no option starts the "
        "command.");
    for (const OptionRow& row : OptionTable()) {
      if (*row.flag == '\0') continue;
      const std::string text =
          absl::StrCat(row.sentence, " Accepts: ", row.accepts, ". Default: ", row.preset, ".");
      if (absl::string_view(row.type) == "switch") {
        run_->add_flag_callback(
            row.flag, [this, name = row.name] { request_.flags[name] = "1"; }, row.sentence);
        continue;
      }
      run_->add_option_function<std::string>(
              row.flag, [this, name = row.name](const std::string& value) { request_.flags[name] = value; },
              text)
          ->type_name("")
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    request_.output.AddTo(run_);
  }

  void AddDryRun() {
    dryrun_ = app_.add_subcommand(
        "dryrun", "Run a job without a GPU, to learn its peak memory and the time of its steps on a card.");
    dryrun_
        ->add_option("--gpu", dryrun_request_.gpu, "The card: a profile, or the path of one. Default: h200.")
        ->type_name("PROFILE");
    dryrun_
        ->add_option("--vram", dryrun_request_.vram,
                     "Under Weir, with this cap. Default: torch's own allocator.")
        ->type_name("LIMIT");
    dryrun_request_.output.AddTo(dryrun_);
    dryrun_->footer(
        "weir dryrun [OPTION...] [--] COMMAND [ARGUMENT...]. The report goes to stderr, or with --json to "
        "stdout (the "
        "job's own output to stderr then), or to the file of -o. Exit codes: 0 it fits, 3 it does not, else "
        "the job's.");
  }

  void AddConfig() {
    config_ =
        app_.add_subcommand("config", "Show every option: its value, where that comes from, its default.");
    config_->add_flag("--page", page_, "Print the documentation page of the options instead.");
    output_.AddTo(config_);
  }

  void AddDoctor() {
    doctor_ =
        app_.add_subcommand("doctor", "Say what is there, what will work, and what to do where it will not.");
    doctor_->add_option("--gpu", doctor_request_.gpu, "As of `weir run`: real or emulated[:PROFILE].")
        ->type_name("GPU");
    doctor_->add_option("python", doctor_request_.python, "The Python of the job. Default: python of PATH.");
    doctor_->add_option("--job", doctor_request_.job, "A running job: whether it has Weir, and by which way.")
        ->type_name("PID");
    doctor_request_.version = kVersion;
    doctor_request_.output.AddTo(doctor_);
    doctor_->footer("Exit codes: 0 a job would run under Weir, 2 an option is wrong, 4 it would not run.");
  }

  void AddPath() {
    path_ = app_.add_subcommand("path", "Print the library for LD_PRELOAD or CUDAPluggableAllocator.");
    path_->add_flag("--emulated-gpu", emulated_gpu_,
                    "Print the emulated GPU's library for LD_PRELOAD instead.");
    output_.AddTo(path_);
  }

  void AddTrace() {
    trace_ = app_.add_subcommand("trace", "Say what a trace (WEIR_TRACE) holds.");
    trace_->add_option("file", trace_request_.file, "The trace.")->type_name("FILE")->required();
    trace_request_.output.AddTo(trace_);
    trace_->footer(
        "A trace that was cut is read as far as it goes. Exit codes: 0 read, 1 not a trace, or damaged.");
  }

  int Dispatch() {
    if (*run_) RunJob(request_, Places::OfThisExecutable());
    if (*dryrun_) return DryRun(dryrun_request_, Places::OfThisExecutable());
    if (*config_) return Config();
    if (*doctor_) return Doctor(doctor_request_, Places::OfThisExecutable());
    if (*path_) return Path();
    if (*trace_) return ShowTrace(trace_request_);
    if (!version_)
      throw Failure(kExitUsage,
                    "no subcommand: weir run | dryrun | config | doctor | path | trace (weir --help)");
    const std::vector<std::string> torch = Places::OfThisExecutable().TorchVersions();
    output_.Write(output_.json
                      ? nlohmann::ordered_json{{"version", kVersion}, {"torch", torch}}.dump(2) + "\n"
                      : absl::StrCat("weir ", kVersion, "\n"));
    return kExitOk;
  }

  int Config() {
    if (page_) {
      output_.Write(OptionsPage());
      return kExitOk;
    }
    const OptionTexts texts = ReadEnvironment();
    const absl::StatusOr<Options> options = ParseOptions(texts);
    if (!options.ok()) throw Failure(kExitUsage, std::string(options.status().message()));
    for (const UnknownOption& unknown : FindUnknownOptions(texts)) {
      if (options->strict) throw Failure(kExitUsage, unknown.Message());
      fprintf(stderr, "weir config: %s\n", unknown.Message().c_str());
    }
    output_.Write(output_.json ? ConfigAsJson(texts) : ConfigAsText(texts));
    return kExitOk;
  }

  int Path() {
    const Places places = Places::OfThisExecutable();
    const std::string path = emulated_gpu_ ? places.EmulatedGpu() : places.Preload();
    if (!std::filesystem::exists(path))
      throw Failure(kExitUnavailable, path + " is missing: install or build Weir again (docs/install.md)");
    output_.Write(output_.json ? nlohmann::ordered_json{{"path", path}}.dump(2) + "\n" : path + "\n");
    return kExitOk;
  }

  CLI::App app_;
  CLI::App* run_ = nullptr;
  CLI::App* dryrun_ = nullptr;
  CLI::App* config_ = nullptr;
  CLI::App* doctor_ = nullptr;
  CLI::App* path_ = nullptr;
  CLI::App* trace_ = nullptr;
  RunRequest request_;
  DryRunRequest dryrun_request_;
  DoctorRequest doctor_request_;
  TraceRequest trace_request_;
  OutputOptions output_;
  bool version_ = false;
  bool page_ = false;
  bool emulated_gpu_ = false;
};

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  weir::CommandLine line;
  try {
    return line.Run({argv + 1, argv + argc});
  } catch (const weir::Failure& failure) {
    fprintf(stderr, "%s: %s\n", line.Name().c_str(), failure.what());
    return failure.code();
  }
}
