#include "tools/weir_command/dryrun_report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/size_text.h"
#include "trace/reader.h"
#include "trace/summary.h"

namespace weir {
namespace {
namespace fs = std::filesystem;

std::string Size(uint64_t bytes) { return FormatBytes(Bytes(bytes)); }

// The lines `key value` that the emulated GPU has written (tools/emulated_gpu/device/figures.h).
void ReadFigures(const fs::path& path, DryRunResult* result) {
  const std::map<std::string, uint64_t*> numbers = {
      {"vram_bytes", &result->vram_bytes},     {"context_bytes", &result->context_bytes},
      {"card_peak_bytes", &result->card_peak}, {"granted_beyond_card", &result->granted_beyond},
      {"reports", &result->reports},           {"steps", &result->steps},
      {"step_ns", &result->step_ns},           {"total_ns", &result->total_ns}};
  std::ifstream file(path);
  std::string key, value;
  while (file >> key && std::getline(file >> std::ws, value)) {
    if (key == "device_name") result->device_name = value;
    if (key == "values") result->values = value;
    if (key == "read" && value.size() > 2) result->value_reads.push_back(value.substr(2));
    if (key == "ended") result->ended = value == "1";
    const auto number = numbers.find(key);
    if (number != numbers.end() && !absl::SimpleAtoi(value, number->second)) *number->second = 0;
  }
}

// None: the process has allocated nothing, or its trace cannot be read, which is a line on stderr.
std::optional<DryRunResult> ReadProcess(const fs::path& trace_file) {
  absl::StatusOr<std::unique_ptr<trace::Reader>> reader = trace::Reader::Open(trace_file);
  absl::StatusOr<trace::Summary> summary =
      reader.ok() ? trace::Summarise(**reader) : absl::StatusOr<trace::Summary>(reader.status());
  if (!summary.ok()) {
    fprintf(stderr, "weir dryrun: %s\n", std::string(summary.status().message()).c_str());
    return std::nullopt;
  }
  if (!summary->header.has_value() || summary->peak_bytes == 0) return std::nullopt;
  DryRunResult result;
  result.process = summary->header->process;
  result.peak_asked = summary->peak_bytes;
  result.classes = summary->classes_at_peak;
  result.refused = summary->by_kind[static_cast<size_t>(trace::Kind::kOutOfMemory)];
  for (const auto& [device, peaks] : summary->allocator_peaks) {
    result.peak_allocated = std::max(result.peak_allocated, peaks.allocated);
    result.peak_reserved = std::max(result.peak_reserved, peaks.reserved);
  }
  ReadFigures(fs::path(trace_file).replace_extension(".figures"), &result);
  return result;
}

// How many bytes the allocator adds to what it is asked for.
uint64_t Rounding(const DryRunResult& result) {
  return result.peak_allocated > result.peak_asked ? result.peak_allocated - result.peak_asked : 0;
}

std::string ValuesAsText(const DryRunResult& result) {
  if (!result.ended) return "not known whether exact: the process was killed";
  if (result.value_reads.empty()) return "exact";
  const size_t others = result.value_reads.size() - 1;
  const std::string where = absl::StrCat(
      result.value_reads[0],
      others == 0 ? "" : absl::StrCat(" and ", others, others == 1 ? " place" : " places", " more"));
  return result.values == "estimate"
             ? absl::StrCat("an estimate: values that were not computed were read by ", where)
             : absl::StrCat("exact, unless a float decides something (read by ", where, ")");
}

void AppendMemory(const DryRunResult& result, std::string* text) {
  absl::StrAppendFormat(text, "  peak allocated  %12s   torch.cuda.max_memory_allocated()\n",
                        Size(result.peak_allocated));
  absl::StrAppendFormat(text, "  peak reserved   %12s   torch.cuda.max_memory_reserved()\n",
                        Size(result.peak_reserved));
  absl::StrAppend(text, "  ", ValuesAsText(result), "\n");
  absl::StrAppend(text, "  at the peak\n");
  for (size_t i = 0; i < trace::kTensorClasses; ++i) {
    absl::StrAppendFormat(text, "    %-13s %12s\n", trace::NameOf(static_cast<trace::TensorClass>(i)),
                          Size(result.classes[i]));
  }
  absl::StrAppendFormat(text, "    %-13s %12s\n", "rounding", Size(Rounding(result)));
}

std::string Verdict(const DryRunResult& result) {
  const std::string card = absl::StrCat("the card has ", Size(result.vram_bytes));
  if (result.refused > 0 && result.job_code != 0)
    return absl::StrCat("no: the job ended with an out-of-memory error under the cap of ", result.vram);
  return absl::StrCat(result.fits() ? "yes: it needs " : "no: it needs ", Size(result.needed()), " and ",
                      card);
}

void AppendTime(const DryRunResult& result, std::string* text) {
  if (result.steps > 0) {
    absl::StrAppendFormat(text, "  step            %9.3f ms   the median of %d; %.3f ms in all\n",
                          static_cast<double>(result.step_ns) / 1e6, result.steps,
                          static_cast<double>(result.total_ns) / 1e6);
  } else if (result.ended) {
    absl::StrAppendFormat(text, "  in all          %9.3f ms   no steps were seen\n",
                          static_cast<double>(result.total_ns) / 1e6);
  } else {
    absl::StrAppend(text, "  step            not known: the process was killed\n");
  }
}

}  // namespace

uint64_t DryRunResult::needed() const { return std::max(card_peak, peak_reserved + context_bytes); }

bool DryRunResult::fits() const {
  return granted_beyond == 0 && needed() <= vram_bytes && (refused == 0 || job_code == 0);
}

std::optional<DryRunResult> ReadDryRun(const fs::path& folder) {
  std::optional<DryRunResult> most;
  uint64_t processes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".wtr") continue;
    const std::optional<DryRunResult> process = ReadProcess(entry.path());
    if (!process.has_value()) continue;
    ++processes;
    if (!most.has_value() || process->needed() > most->needed()) most = process;
  }
  if (most.has_value()) most->processes = processes;
  return most;
}

std::string DryRunAsText(const DryRunResult& result) {
  std::string text =
      absl::StrCat("weir dryrun: ", result.device_name, " (", result.gpu, "), ",
                   result.vram.empty() ? "torch's own allocator" : absl::StrCat("cap ", result.vram), "\n");
  AppendMemory(result, &text);
  absl::StrAppend(&text, "  fits            ", Verdict(result), "\n");
  AppendTime(result, &text);
  if (result.processes > 1)
    absl::StrAppend(&text, "  processes       ", result.processes, "; this is the one that needs most\n");
  if (result.job_code != 0)
    absl::StrAppend(&text, "  the job failed with exit code ", result.job_code,
                    ": this is what it needed until then\n");
  return text;
}

std::string DryRunAsJson(const DryRunResult& result) {
  using Json = nlohmann::ordered_json;
  Json classes = Json::object(), step = nullptr;
  for (size_t i = 0; i < trace::kTensorClasses; ++i)
    classes[trace::NameOf(static_cast<trace::TensorClass>(i))] = result.classes[i];
  classes["rounding"] = Rounding(result);
  if (result.steps > 0) step = {{"count", result.steps}, {"median_ns", result.step_ns}};
  const Json json = {
      {"gpu", {{"profile", result.gpu}, {"name", result.device_name}, {"vram_bytes", result.vram_bytes}}},
      {"cap", result.vram.empty() ? Json(nullptr) : Json(result.vram)},
      {"memory",
       {{"peak_allocated_bytes", result.peak_allocated},
        {"peak_reserved_bytes", result.peak_reserved},
        {"context_bytes", result.context_bytes},
        {"at_peak", classes}}},
      {"values", result.ended ? Json(result.values) : Json(nullptr)},
      {"value_reads", result.value_reads},
      {"fits", result.fits()},
      {"needed_bytes", result.needed()},
      {"step", step},
      {"total_ns", result.ended ? Json(result.total_ns) : Json(nullptr)},
      {"reports", result.reports},
      {"process", result.process},
      {"processes", result.processes},
      {"exit_code", result.job_code}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir
