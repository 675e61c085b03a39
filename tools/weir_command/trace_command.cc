#include "tools/weir_command/trace_command.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/size_text.h"
#include "tools/weir_command/failure.h"
#include "trace/reader.h"
#include "trace/summary.h"

namespace weir {
namespace {

using trace::Summary;

constexpr size_t kShownOps = 15;

std::string Size(uint64_t bytes) { return FormatBytes(Bytes(bytes)); }
double Milliseconds(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

double BytesPerEvent(const Summary& summary) {
  return summary.events() == 0
             ? 0
             : static_cast<double>(summary.file_bytes) / static_cast<double>(summary.events());
}

bool IsVirtual(const Summary& summary) {
  return static_cast<trace::ClockKind>(summary.header->clock) == trace::ClockKind::kVirtual;
}

std::string EndAsText(const Summary& summary) {
  std::string text =
      summary.ended ? "ended in order" : "not ended: the job was killed, still runs, or the disk was full";
  if (summary.cut_bytes > 0) absl::StrAppend(&text, "; ", summary.cut_bytes, " bytes at the end are cut off");
  if (summary.lost_records > 0) {
    absl::StrAppend(&text, "; ", summary.lost_records, " records were dropped, the disk was too slow");
  }
  return text;
}

void AppendHead(const std::string& file, const Summary& summary, std::string* text) {
  absl::StrAppend(text, "trace      ", file, ", ", Size(summary.file_bytes), "\n");
  absl::StrAppend(text, "process    ", summary.header->process, ", rank ", summary.header->rank, ", host ",
                  summary.header->host, "\n");
  absl::StrAppend(text, "state      ", EndAsText(summary), "\n");
  absl::StrAppendFormat(text, "duration   %.3f ms%s, %d threads, %d events, %.1f bytes an event\n",
                        Milliseconds(summary.duration_ns),
                        IsVirtual(summary) ? " of the emulated GPU's virtual clock" : "", summary.threads,
                        summary.events(), BytesPerEvent(summary));
}

void AppendEvents(const Summary& summary, std::string* text) {
  absl::StrAppend(text, "\nevents\n");
  for (size_t kind = 1; kind < trace::kKinds; ++kind) {
    if (summary.by_kind[kind] == 0) continue;
    absl::StrAppendFormat(text, "  %-14s %12d\n", trace::NameOf(static_cast<trace::Kind>(kind)),
                          summary.by_kind[kind]);
  }
}

void AppendMemory(const Summary& summary, std::string* text) {
  absl::StrAppendFormat(text, "\nallocated  %d blocks, %s in all; at the end %s\n", summary.allocated.count,
                        Size(summary.allocated.sum), Size(summary.live_bytes_at_end));
  absl::StrAppendFormat(text, "peak       %s at %.3f ms\n", Size(summary.peak_bytes),
                        Milliseconds(summary.peak_ns));
  for (size_t i = 0; i < trace::kTensorClasses; ++i) {
    if (summary.classes_at_peak[i] == 0) continue;
    absl::StrAppendFormat(text, "  %-14s %12s\n", trace::NameOf(static_cast<trace::TensorClass>(i)),
                          Size(summary.classes_at_peak[i]));
  }
}

void AppendSteps(const Summary& summary, std::string* text) {
  absl::StrAppend(text, "\nphases     ", summary.steps, " optimizer steps\n");
  for (size_t i = 0; i < trace::kStepParts; ++i) {
    const trace::Amount& part = summary.parts[i];
    if (part.count == 0) continue;
    absl::StrAppendFormat(text, "  %-14s %12.3f ms in %d\n", trace::NameOf(static_cast<trace::StepPart>(i)),
                          Milliseconds(part.sum), part.count);
  }
}

void AppendMoves(const Summary& summary, std::string* text) {
  absl::StrAppendFormat(text, "\nmoves      out %d, %s; in %d, %s\n", summary.evicted.count,
                        Size(summary.evicted.sum), summary.fetched.count, Size(summary.fetched.sum));
  for (size_t i = 0; i < trace::kWaitCauses; ++i) {
    const trace::Amount& wait = summary.waits[i];
    if (wait.count == 0) continue;
    absl::StrAppendFormat(text, "  waited for %-9s %8d times, %.3f ms\n",
                          trace::NameOf(static_cast<trace::WaitCause>(i)), wait.count,
                          Milliseconds(wait.sum));
  }
}

void AppendOps(const Summary& summary, std::string* text) {
  absl::StrAppendFormat(text, "\n%-44s %8s %8s %12s %12s\n", "op", "calls", "blocks", "allocated", "host ms");
  for (size_t i = 0; i < summary.ops.size() && i < kShownOps; ++i) {
    const trace::OpFigures& op = summary.ops[i];
    absl::StrAppendFormat(text, "%-44s %8d %8d %12s %12.3f\n", op.name, op.calls, op.allocated.count,
                          Size(op.allocated.sum), Milliseconds(op.ns));
  }
  if (summary.ops.size() > kShownOps)
    absl::StrAppend(text, "... and ", summary.ops.size() - kShownOps, " more (--json has all)\n");
}

std::string AsText(const std::string& file, const Summary& summary) {
  std::string text;
  AppendHead(file, summary, &text);
  AppendEvents(summary, &text);
  AppendMemory(summary, &text);
  AppendSteps(summary, &text);
  AppendMoves(summary, &text);
  AppendOps(summary, &text);
  return text;
}

using Json = nlohmann::ordered_json;

Json BytesJson(const trace::Amount& amount) { return {{"count", amount.count}, {"bytes", amount.sum}}; }
Json TimeJson(const trace::Amount& amount) { return {{"count", amount.count}, {"ns", amount.sum}}; }

Json MemoryJson(const Summary& summary) {
  Json classes = Json::object();
  for (size_t i = 0; i < trace::kTensorClasses; ++i) {
    classes[trace::NameOf(static_cast<trace::TensorClass>(i))] = summary.classes_at_peak[i];
  }
  return {{"blocks", summary.allocated.count},
          {"bytes", summary.allocated.sum},
          {"bytes_at_end", summary.live_bytes_at_end},
          {"peak_bytes", summary.peak_bytes},
          {"peak_ns", summary.peak_ns},
          {"classes_at_peak", classes}};
}

std::string AsJson(const std::string& file, const Summary& summary) {
  Json events = Json::object(), waits = Json::object(), phases = Json::object(), ops = Json::array();
  for (size_t kind = 1; kind < trace::kKinds; ++kind) {
    events[trace::NameOf(static_cast<trace::Kind>(kind))] = summary.by_kind[kind];
  }
  for (size_t i = 0; i < trace::kWaitCauses; ++i)
    waits[trace::NameOf(static_cast<trace::WaitCause>(i))] = TimeJson(summary.waits[i]);
  for (size_t i = 0; i < trace::kStepParts; ++i)
    phases[trace::NameOf(static_cast<trace::StepPart>(i))] = TimeJson(summary.parts[i]);
  for (const trace::OpFigures& op : summary.ops) {
    ops.push_back({{"name", op.name},
                   {"calls", op.calls},
                   {"ns", op.ns},
                   {"blocks", op.allocated.count},
                   {"bytes", op.allocated.sum}});
  }
  Json json = {{"file", file},
               {"file_bytes", summary.file_bytes},
               {"version", trace::kVersion},
               {"process", summary.header->process},
               {"rank", summary.header->rank},
               {"host", summary.header->host},
               {"clock", IsVirtual(summary) ? "virtual" : "machine"},
               {"started_ns", summary.header->wall_ns}};
  json.update({{"ended", summary.ended},
               {"cut_bytes", summary.cut_bytes},
               {"lost_records", summary.lost_records},
               {"unknown_records", summary.unknown_records},
               {"duration_ns", summary.duration_ns},
               {"threads", summary.threads},
               {"events", summary.events()},
               {"bytes_per_event", BytesPerEvent(summary)},
               {"events_by_kind", events},
               {"memory", MemoryJson(summary)},
               {"optimizer_steps", summary.steps},
               {"phases", phases},
               {"evicted", BytesJson(summary.evicted)},
               {"fetched", BytesJson(summary.fetched)},
               {"waits", waits},
               {"ops", ops}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int ShowTrace(const TraceRequest& request) {
  absl::StatusOr<std::unique_ptr<trace::Reader>> reader = trace::Reader::Open(request.file);
  if (!reader.ok()) throw Failure(kExitFailed, std::string(reader.status().message()));
  const absl::StatusOr<Summary> summary = trace::Summarise(**reader);
  if (!summary.ok()) throw Failure(kExitFailed, std::string(summary.status().message()));
  if (!summary->header.has_value()) {
    throw Failure(kExitFailed,
                  absl::StrCat(request.file, " is cut inside its header: it has ", summary->file_bytes,
                               " of ", sizeof(trace::FileHeader), " bytes and no records"));
  }
  request.output.Write(request.output.json ? AsJson(request.file, *summary) : AsText(request.file, *summary));
  return kExitOk;
}

}  // namespace weir
