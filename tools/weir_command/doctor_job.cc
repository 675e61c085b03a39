#include "tools/weir_command/doctor_job.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/weir_command/failure.h"

namespace weir {
namespace {

constexpr char kLoader[] = "libweir_preload.so";

std::string ReadOf(const std::string& process, const char* file) {
  std::ifstream stream(absl::StrCat("/proc/", process, "/", file));
  const bool is_number = process.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || !stream || stream.peek() == std::ifstream::traits_type::eof()) {
    throw Failure(kExitUsage, absl::StrCat("--job ", process, ": no process of this user with that number"));
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The first file mapped whose name starts so. Empty: none.
std::string MappedFile(const std::string& maps, absl::string_view prefix) {
  for (absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t slash = line.find('/');
    if (slash == absl::string_view::npos) continue;
    const std::string path(line.substr(slash));
    if (absl::StartsWith(std::filesystem::path(path).filename().string(), prefix)) return path;
  }
  return "";
}

// A variable of the environment that the process was started with.
std::string Variable(const std::string& environment, absl::string_view name) {
  for (absl::string_view entry : absl::StrSplit(environment, '\0')) {
    if (absl::StartsWith(entry, absl::StrCat(name, "="))) return std::string(entry.substr(name.size() + 1));
  }
  return "";
}

std::string WayOf(const std::string& environment) {
  if (absl::StrContains(Variable(environment, "LD_PRELOAD"), kLoader))
    return Variable(environment, "WEIR_REQUIRED") == "1" ? "`weir run`" : "LD_PRELOAD";
  if (!Variable(environment, "WEIR_VRAM").empty()) return "the entry point torch.backends";
  return "torch_weir.install(), an entry point or CUDAPluggableAllocator (torch_weir.status() in it knows)";
}

}  // namespace

void LookAtJob(const std::string& process, DoctorReport& report) {
  const std::string maps = ReadOf(process, "maps"), environment = ReadOf(process, "environ");
  const std::string loader = MappedFile(maps, kLoader), plugin = MappedFile(maps, "libweir_torch_");
  const std::string name = absl::StrCat("process ", process);
  if (loader.empty()) {
    report.Warn("job", absl::StrCat(name, " has no Weir in it"),
                "restart it with `weir run`; a running job cannot get Weir");
  } else if (plugin.empty()) {
    report.Warn(
        "job",
        absl::StrCat(name, " has Weir's loader (", loader, ") by ", WayOf(environment), ", and no plugin"),
        "none is loaded before CUDA is used; after that the job's stderr says why");
  } else {
    report.Ok("job", absl::StrCat(name, " has Weir by ", WayOf(environment), ": ", plugin));
  }
}

}  // namespace weir
