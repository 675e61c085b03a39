#include "tools/weir_command/job_command.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/options.h"
#include "tools/weir_command/captured_output.h"
#include "tools/weir_command/failure.h"

namespace weir {
namespace fs = std::filesystem;
namespace {

bool IsExecutableFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

bool IsPythonName(const std::string& name) {
  absl::string_view rest = name;
  return absl::ConsumePrefix(&rest, "python") &&
         rest.find_first_not_of("0123456789.t") == absl::string_view::npos;
}

// The Python that a script's first line names ("#!/usr/bin/env python3" too). Empty if it names none.
std::optional<fs::path> PythonOfScript(const fs::path& script) {
  std::ifstream file(script);
  char mark[2] = {};
  if (!file.read(mark, 2) || mark[0] != '#' || mark[1] != '!') return std::nullopt;
  std::string line;
  std::getline(file, line);
  std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.size() >= 2 && fs::path(words[0]).filename() == "env") words.erase(words.begin());
  if (words.empty() || !IsPythonName(fs::path(words[0]).filename())) return std::nullopt;
  try {
    return FindCommand(words[0]);
  } catch (const Failure&) {
    return std::nullopt;  // exec will say so
  }
}

// The folder of the torch package that `python` would import.
std::optional<fs::path> TorchFolderOfPython(const fs::path& python) {
  // The working folder is left out: `python train.py` does not look there, `python -c` does.
  constexpr char kProgram[] =
      "import importlib.util, os, sys\n"
      "sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]\n"
      "found = importlib.util.find_spec('torch')\n"
      "print(os.path.dirname(found.origin) if found and found.origin else '', end='')\n";
  const std::optional<std::string> folder = CapturedOutput({python.string(), "-c", kProgram});
  if (!folder || folder->empty()) return std::nullopt;
  return fs::path(*folder);
}

// The folder above the `lib` that an executable's libtorch comes from.
std::optional<fs::path> TorchFolderOfExecutable(const fs::path& executable) {
  std::ifstream file(executable);
  char magic[4] = {};
  if (!file.read(magic, 4) || std::string(magic, 4) != "\177ELF") return std::nullopt;
  const std::optional<std::string> libraries = CapturedOutput({"ldd", executable.string()});
  if (!libraries) return std::nullopt;
  for (absl::string_view line : absl::StrSplit(*libraries, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() >= 3 && words[0] == "libtorch_cpu.so" && words[1] == "=>" &&
        absl::StartsWith(words[2], "/")) {
      return fs::path(words[2]).parent_path().parent_path();
    }
  }
  return std::nullopt;
}

// Wheels say it in version.py (__version__ = '2.15.0+cu130'), LibTorch archives in build-version.
std::string VersionIn(const fs::path& torch_folder) {
  std::ifstream module(torch_folder / "version.py");
  for (std::string line; std::getline(module, line);) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "__version__ = '") && absl::ConsumeSuffix(&rest, "'"))
      return std::string(rest);
  }
  std::ifstream archive(torch_folder / "build-version");
  std::string version;
  std::getline(archive, version);
  return version;
}

// "2.15.0+cu130" -> "2.15"
std::string MinorOf(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

}  // namespace

fs::path FindCommand(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    if (!fs::exists(name, error)) throw Failure(kExitNotFound, absl::StrCat(name, ": no such file"));
    if (!IsExecutableFile(name))
      throw Failure(kExitNotExecutable, absl::StrCat(name, ": not an executable file"));
    return name;
  }
  bool seen = false;
  const std::string path = EnvironmentText("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (absl::string_view folder : absl::StrSplit(path, ':')) {
    const fs::path candidate = fs::path(folder.empty() ? std::string(".") : std::string(folder)) / name;
    if (!name.empty() && IsExecutableFile(candidate)) return candidate;
    seen = seen || (!name.empty() && fs::is_regular_file(candidate, error));
  }
  if (seen) throw Failure(kExitNotExecutable, absl::StrCat(name, ": found in PATH but not executable"));
  throw Failure(kExitNotFound, absl::StrCat("\"", name, "\": command not found"));
}

std::optional<TorchFound> FindTorchOf(const fs::path& command) {
  std::optional<fs::path> python;
  if (IsPythonName(command.filename())) {
    python = command;
  } else {
    python = PythonOfScript(command);
  }
  const std::optional<fs::path> folder =
      python ? TorchFolderOfPython(*python) : TorchFolderOfExecutable(command);
  if (!folder) return std::nullopt;
  std::error_code error;
  return TorchFound{VersionIn(*folder), fs::exists(*folder / "lib" / "libtorch_cuda.so", error)};
}

void RequireWorkingTorch(const std::optional<TorchFound>& torch,
                         const std::vector<std::string>& working_versions) {
  if (!torch) return;
  const std::string working = absl::StrJoin(working_versions, ", ");
  const std::string version = torch->version.empty() ? "of unknown version" : torch->version;
  if (!torch->has_cuda) {
    throw Failure(
        kExitUnavailable,
        absl::StrCat("the torch of this job (", version,
                     ") is CPU-only (no libtorch_cuda.so): install a CUDA build of torch ", working));
  }
  if (torch->version.empty()) return;  // the loader reads it from the loaded library and decides
  for (const std::string& known : working_versions) {
    if (known == MinorOf(torch->version)) return;
  }
  throw Failure(kExitUnavailable, absl::StrCat("the torch of this job (", version,
                                               ") is not known to Weir: it works with torch ", working));
}

}  // namespace weir
