// Where the parts of Weir are, relative to this executable: BUILD/bin/weir and BUILD/lib.
#ifndef WEIR_TOOLS_WEIR_COMMAND_PLACES_H_
#define WEIR_TOOLS_WEIR_COMMAND_PLACES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "allocator/base/options.h"

namespace weir {

class Places {
 public:
  explicit Places(std::filesystem::path library_folder) : library_folder_(std::move(library_folder)) {}
  // From /proc/self/exe. Throws Failure(kExitUnavailable) if that cannot be read.
  static Places OfThisExecutable();

  std::filesystem::path Preload() const { return library_folder_ / "libweir_preload.so"; }
  std::filesystem::path EmulatedGpu() const {
    return library_folder_ / "emulated_gpu" / "libweir_emulated_gpu.so";
  }
  std::filesystem::path EmulatedDriver() const { return library_folder_ / "emulated_gpu" / "libcuda.so.1"; }

  // The torch versions that this build works with, such as "2.15", sorted.
  std::vector<std::string> TorchVersions() const;

  // Throws Failure(kExitUnavailable) naming the first file that a job with these options needs and that is
  // missing.
  void RequireParts(const Options& options) const;

 private:
  std::filesystem::path library_folder_;
};

}  // namespace weir

#endif  // WEIR_TOOLS_WEIR_COMMAND_PLACES_H_
