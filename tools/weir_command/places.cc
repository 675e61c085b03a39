#include "tools/weir_command/places.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/weir_command/failure.h"

namespace weir {
namespace fs = std::filesystem;

Places Places::OfThisExecutable() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error)
    throw Failure(kExitUnavailable,
                  "cannot read /proc/self/exe to find Weir's libraries: " + error.message());
  return Places(executable.parent_path().parent_path() / "lib");
}

std::vector<std::string> Places::TorchVersions() const {
  std::vector<std::string> versions;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(library_folder_, error)) {
    const std::string file = entry.path().filename().string();
    absl::string_view name = file;
    if (!absl::ConsumePrefix(&name, "libweir_torch_") || !absl::ConsumeSuffix(&name, ".so")) continue;
    versions.push_back(absl::StrReplaceAll(name, {{"_", "."}}));
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

void Places::RequireParts(const Options& options) const {
  std::vector<fs::path> parts = {Preload()};
  if (options.gpu.emulated) {
    parts.push_back(EmulatedGpu());
    parts.push_back(EmulatedDriver());
  }
  if (!options.disable) parts.push_back(library_folder_ / "libweir_core.so");
  for (const fs::path& part : parts) {
    if (!fs::exists(part)) {
      throw Failure(
          kExitUnavailable,
          absl::StrCat(part.string(), " is missing: install or build Weir again (docs/install.md)"));
    }
    if (part.string().find_first_of(" :") != std::string::npos) {
      throw Failure(kExitUnavailable,
                    absl::StrCat("\"", part.string(),
                                 "\" has a space or a colon in its path, which LD_PRELOAD cannot hold: "
                                 "move Weir"));
    }
  }
}

}  // namespace weir
