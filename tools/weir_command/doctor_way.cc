#include "tools/weir_command/doctor_way.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/weir_command/captured_output.h"

namespace weir {
namespace fs = std::filesystem;
namespace {

constexpr char kHowToPreload[] = "export LD_PRELOAD=$(weir path), or unset it and use `weir run`";

// torch_weir as a Python has it.
struct PackageFound {
  std::string version;
  std::string folder;            // empty: it cannot be imported
  bool has_entry_point = false;  // of torch.backends
  bool is_asked = false;         // a WEIR_* variable asks for Weir
};

std::optional<PackageFound> FindPackage(const std::string& python) {
  if (python.empty()) return std::nullopt;
  constexpr char kProgram[] =
      "import os, sys\n"
      "from importlib import metadata\n"
      "sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]\n"
      "print(metadata.version('torch-weir'))\n"
      "try:\n"
      "    from torch_weir import _entry_point, _places\n"
      "except Exception:\n"
      "    sys.exit()\n"
      "print(_places.FOLDER)\n"
      "print(int('torch_weir' in [entry.name for entry in metadata.entry_points(group='torch.backends')]))\n"
      "print(int(_entry_point.asks_for_weir(dict(os.environ))))\n";
  const std::optional<std::string> output = CapturedOutput({python, "-c", kProgram});
  if (!output) return std::nullopt;
  std::vector<std::string> lines = absl::StrSplit(*output, '\n');
  lines.resize(4);
  return PackageFound{lines[0], lines[1], lines[2] == "1", lines[3] == "1"};
}

// The loader that LD_PRELOAD names first. Empty: none.
std::string PreloadedLoader(const Places& places) {
  const std::string preload = EnvironmentText("LD_PRELOAD").value_or("");
  for (absl::string_view entry : absl::StrSplit(preload, absl::ByAnyChar(" :"), absl::SkipEmpty())) {
    if (fs::path(std::string(entry)).filename() == places.Preload().filename()) return std::string(entry);
  }
  return "";
}

void LookAtPreloaded(const std::string& loader, const OptionTexts& texts, const Places& places,
                     DoctorReport& report) {
  std::error_code error;
  if (!fs::exists(loader, error)) {
    report.Warn("way", absl::StrCat("LD_PRELOAD names ", loader, ", which is not there: it is ignored"),
                kHowToPreload);
    return;
  }
  const auto required = texts.find("WEIR_REQUIRED");
  const bool is_run = required != texts.end() && required->second == "1";
  report.Ok("way", absl::StrCat(is_run ? "`weir run` (LD_PRELOAD and WEIR_REQUIRED=1)" : "LD_PRELOAD", ": ",
                                "every process that uses CUDA"));
  if (!fs::equivalent(loader, places.Preload(), error)) {
    report.Warn("way",
                absl::StrCat("what is preloaded is of another Weir than this command: ", loader, ", not ",
                             places.Preload().string()),
                kHowToPreload);
  }
}

// The variables that would ask for Weir if something looked at them.
std::string OptionsThatAsk(const OptionTexts& texts) {
  for (const char* name : {"WEIR_VRAM", "WEIR_RAM", "WEIR_POLICY", "WEIR_TRACE"}) {
    const auto found = texts.find(name);
    if (found != texts.end() && !found->second.empty()) return name;
  }
  return "";
}

void LookAtPackage(const PackageFound& package, const std::string& version, DoctorReport& report) {
  if (package.folder.empty()) {
    report.Problem(kExitUnavailable, "way",
                   absl::StrCat("torch_weir ", package.version, " of this Python cannot be imported"),
                   "pip install torch-weir again");
    return;
  }
  const std::string name = absl::StrCat("torch_weir ", package.version, " in ", package.folder);
  if (!package.is_asked) {
    report.Ok("way",
              absl::StrCat("none is asked for: ", name, " waits for `weir run`, WEIR_VRAM or install()"));
  } else if (EnvironmentText("TORCH_DEVICE_BACKEND_AUTOLOAD").value_or("") == "0") {
    report.Warn("way", absl::StrCat("none: TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps `import torch` from ", name),
                "unset it, or call torch_weir.install() in the script, or use `weir run`");
  } else if (!package.has_entry_point) {
    report.Warn("way", absl::StrCat("none: ", name, " is not among torch's entry points (torch.backends)"),
                "pip install torch-weir again, or use `weir run`");
  } else {
    report.Ok("way", absl::StrCat("the entry point torch.backends: `import torch` finds ", name));
  }
  if (package.version != version) {
    report.Warn("way", absl::StrCat("this command is of Weir ", version, ", ", name),
                "use the `weir` of that Python, or upgrade what is older");
  }
}

}  // namespace

void LookAtWay(const std::string& python, const OptionTexts& texts, const std::string& version,
               const Places& places, DoctorReport& report) {
  if (const std::string loader = PreloadedLoader(places); !loader.empty()) {
    LookAtPreloaded(loader, texts, places, report);
    return;
  }
  if (const std::optional<PackageFound> package = FindPackage(python)) {
    LookAtPackage(*package, version, report);
    return;
  }
  const std::string asking = OptionsThatAsk(texts);
  if (asking.empty()) {
    report.Ok("way", "none is asked for: `weir run` brings Weir, or LD_PRELOAD=$(weir path)");
  } else {
    report.Warn("way",
                absl::StrCat("none: ", asking, " is set, but nothing is preloaded, and ",
                             python.empty() ? "there is no Python" : "this Python has no torch_weir"),
                "`weir run` in front of the job, or LD_PRELOAD=$(weir path), or pip install torch-weir");
  }
}

}  // namespace weir
