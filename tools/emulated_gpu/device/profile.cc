#include "tools/emulated_gpu/device/profile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "tools/emulated_gpu/device/device_list.h"

namespace weir::emulated {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void ReadProfile(Options& options) {
  const std::string gpu = FromEnvironment("WEIR_GPU");
  const size_t colon = gpu.find(':');
  const std::string name = colon == std::string::npos ? "h200" : gpu.substr(colon + 1);
  auto* profile = new Profile;  // for the life of the process
  std::string mistake;
  if (!FindDevices(name, profile, &options.devices, &mistake)) {
    options.mistake = "WEIR_GPU=" + gpu + ": " + mistake;
    delete profile;
    return;
  }
  options.profile = profile;
  options.vram_bytes = profile->vram_mib * kMiB;
}

// The place of the variable's text in `choices`, 0 when it is not set.
size_t Choice(Options& options, const char* variable, std::initializer_list<const char*> choices) {
  const std::string text = FromEnvironment(variable);
  std::string known;
  for (const char* const* choice = choices.begin(); choice != choices.end(); ++choice) {
    if (text == *choice) return static_cast<size_t>(choice - choices.begin());
    known += (known.empty() ? "" : ", ") + std::string(*choice);
  }
  if (!text.empty()) options.mistake = std::string(variable) + "=" + text + ": must be one of " + known;
  return 0;
}

// What `weir dryrun` sets.
void ReadDryRun(Options& options) {
  options.overcommit = FromEnvironment("WEIR_EMULATED_OVERCOMMIT") == "1";
  options.figures = FromEnvironment("WEIR_EMULATED_FIGURES");
  const std::string context = FromEnvironment("WEIR_EMULATED_CONTEXT");
  if (context.empty()) return;
  options.context_bytes = ParseSize(context);
  if (options.context_bytes == 0)
    options.mistake = "WEIR_EMULATED_CONTEXT=" + context + ": not a size such as 400MiB";
}

void ReadOrder(Options& options) {
  options.lazy_streams = Choice(options, "WEIR_EMULATED_STREAMS", {"lazy", "eager"}) == 0;
  options.checks = Choice(options, "WEIR_EMULATED_CHECKS", {"on", "off"}) == 0;
  const Reports reports[] = {Reports::kLog, Reports::kAbort, Reports::kCount};
  options.reports = reports[Choice(options, "WEIR_EMULATED_REPORTS", {"log", "abort", "count"})];
  const std::string seed = FromEnvironment("WEIR_EMULATED_SEED");
  char* end = nullptr;
  options.seed = std::strtoull(seed.c_str(), &end, 10);
  if (*end != '\0') options.mistake = "WEIR_EMULATED_SEED=" + seed + ": must be a number";
}

void ReadRest(Options& options) {
  const std::string kernels = FromEnvironment("WEIR_KERNELS");
  if (kernels == "none") {
    options.kernels = Kernels::kNone;
  } else if (!kernels.empty() && kernels != "cpu") {
    options.mistake = "WEIR_KERNELS=" + kernels + ": must be cpu or none";
  }
  const std::string vram = FromEnvironment("WEIR_EMULATED_VRAM");
  if (!vram.empty()) {
    options.vram_bytes = ParseSize(vram);
    if (options.vram_bytes == 0)
      options.mistake = "WEIR_EMULATED_VRAM=" + vram + ": not a size such as 24GiB";
  }
  ReadDryRun(options);
  ReadOrder(options);
  options.poison = FromEnvironment("WEIR_EMULATED_POISON") == "1";
  options.timing = FromEnvironment("WEIR_EMULATED_TIMING") == "1";
  options.visible = VisibleDevices(std::getenv("CUDA_VISIBLE_DEVICES"), options.devices);
}

}  // namespace

size_t ParseSize(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number > 0)) return 0;
  static constexpr struct {
    const char* unit;
    double bytes;
  } kUnits[] = {{"", 1},       {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},
                {"M", 0x1p20}, {"MiB", 0x1p20}, {"MB", 1e6},     {"G", 0x1p30},   {"GiB", 0x1p30},
                {"GB", 1e9},   {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12}};
  for (const auto& unit : kUnits) {
    if (std::strcmp(end, unit.unit) == 0) return static_cast<size_t>(number * unit.bytes);
  }
  return 0;
}

const Options& Settings() {
  static const Options* options = [] {
    auto* read = new Options;
    ReadProfile(*read);
    ReadRest(*read);
    return read;
  }();
  return *options;
}

}  // namespace weir::emulated
