#include "tools/weir_command/doctor_settings.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/option_table.h"
#include "allocator/base/size_text.h"
#include "allocator/base/torch_conf.h"
#include "tools/weir_command/failure.h"
#include "tools/weir_command/run_command.h"

namespace weir {
namespace {

// Set by `weir run` or `weir dryrun` for the job that they become, in which they are no leftovers.
bool IsLeftOver(const OptionRow& row) {
  return row.internal && absl::StartsWith(row.sentence, "Set by `weir") &&
         absl::string_view(row.name) != "WEIR_REQUIRED" &&
         !absl::StrContains(EnvironmentText("LD_PRELOAD").value_or(""), "libweir_");
}

bool IsOfEmulatedGpu(const OptionRow& row) {
  return !row.internal &&
         (absl::StartsWith(row.name, "WEIR_EMULATED_") || absl::string_view(row.name) == "WEIR_KERNELS");
}

void LookAtTorchConf(DoctorReport& report) {
  try {
    RefuseOtherAllocators();
  } catch (const Failure& failure) {
    report.Problem(kExitUsage, "allocator", failure.what(), "unset it");
  }
  const TorchConf conf = ReadTorchConf(TorchConfText());
  if (!conf.without_effect.empty()) {
    report.Warn(
        "allocator",
        absl::StrCat("PYTORCH_ALLOC_CONF: ", absl::StrJoin(conf.without_effect, ", "),
                     conf.without_effect.size() == 1 ? " has" : " have", " no effect on Weir's blocks"),
        "leave it out; Weir's blocks do not fragment as those settings are for");
  }
  if (conf.fraction < 1) {
    report.Ok("allocator", absl::StrCat("PYTORCH_ALLOC_CONF: per_process_memory_fraction:", conf.fraction,
                                        " of the card is a cap too"));
  }
}

}  // namespace

Options LookAtOptions(const OptionTexts& texts, DoctorReport& report) {
  for (const UnknownOption& unknown : FindUnknownOptions(texts)) {
    report.Warn("options", unknown.Message(),
                absl::StrCat("unset ", unknown.name, "; `weir run` refuses it"));
  }
  OptionTexts good;
  std::vector<std::string> set;
  for (const OptionRow& row : OptionTable()) {
    const auto found = texts.find(row.name);
    if (row.internal || found == texts.end() || found->second.empty()) continue;
    const absl::StatusOr<Options> read = ParseOptions({{found->first, found->second}});
    if (!read.ok()) {
      report.Problem(kExitUsage, "options", std::string(read.status().message()),
                     absl::StrCat("`weir config` shows what ", row.name, " accepts"));
      continue;
    }
    good.insert(*found);
    set.push_back(absl::StrCat(row.name, "=", found->second));
  }
  report.Ok("options", set.empty() ? "none is set" : absl::StrJoin(set, ", "));
  Options options = *ParseOptions(good);
  if (options.disable) report.Warn("options", "WEIR_DISABLE=1: jobs run without Weir", "unset WEIR_DISABLE");
  return options;
}

void LookAtStaleSettings(const OptionTexts& texts, const Options& options, DoctorReport& report) {
  for (const OptionRow& row : OptionTable()) {
    const auto found = texts.find(row.name);
    if (found == texts.end() || found->second.empty()) continue;
    if (IsLeftOver(row)) {
      report.Warn("stale", absl::StrCat(row.name, " is left over from another job: ", row.sentence),
                  absl::StrCat("unset ", row.name));
    } else if (IsOfEmulatedGpu(row) && !options.gpu.emulated) {
      report.Warn("stale", absl::StrCat(row.name, " has no effect: the GPU is a real one"),
                  absl::StrCat("unset ", row.name, ", or --gpu emulated"));
    }
  }
  LookAtTorchConf(report);
}

void LookAtCaps(const Options& options, const std::vector<Bytes>& totals, DoctorReport& report) {
  for (size_t i = 0; i < totals.size(); ++i) {
    const VramLimit limit = options.vram.ForDevice(static_cast<int>(i));
    if (limit.kind != VramLimit::Kind::kBytes) continue;
    if (limit.bytes > totals[i]) {
      report.Warn("vram",
                  absl::StrCat("WEIR_VRAM=", FormatBytes(limit.bytes), " is more than device ", i,
                               " has; the cap is ", FormatBytes(totals[i])),
                  "a smaller WEIR_VRAM, or auto");
    } else {
      report.Ok("vram", absl::StrCat("device ", i, ": a cap of ", FormatBytes(limit.bytes), " (WEIR_VRAM)"));
    }
  }
  for (const auto& [device, limit] : options.vram.by_device) {
    if (totals.empty() || static_cast<size_t>(device) < totals.size()) continue;
    report.Warn("vram", absl::StrCat("WEIR_VRAM names device ", device, ", and there are ", totals.size()),
                "leave it out: devices count from 0, in the order of CUDA_VISIBLE_DEVICES");
  }
}

}  // namespace weir
