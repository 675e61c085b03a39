#include "trace/summary.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weir::trace {
namespace {

uint64_t Between(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

// The first pass.
class Counter {
 public:
  Counter(Reader& reader, Summary& summary) : reader_(reader), summary_(summary) {}

  absl::Status Add(const Record& record);
  void Finish();
  // The record after which most was allocated; none if nothing was.
  std::optional<uint64_t> peak_record() const { return peak_record_; }

 private:
  struct OpenOp {
    uint32_t number;
    OpKind kind;
    uint64_t began_ns;
  };
  struct Thread {
    std::vector<OpenOp> open;
    size_t outside = 0;  // the first so many are no operators; == open.size(): none is
  };
  void Allocate(const Record& record);
  void Free(uint64_t address);
  void BeginOp(const Record& record);
  void EndOp(const Record& record);
  void EnterPhase(Phase phase, uint64_t now_ns);
  void NotePeaks(const Record& record);
  // The outermost operator that is open on the thread; null if none is.
  OpenOp* Outermost(uint16_t thread);

  Reader& reader_;
  Summary& summary_;
  absl::flat_hash_map<uint64_t, uint64_t> blocks_;  // address: bytes
  absl::flat_hash_map<uint16_t, Thread> threads_;
  absl::flat_hash_map<uint32_t, OpFigures> ops_;
  size_t open_ops_ = 0;
  uint64_t live_bytes_ = 0;
  std::optional<uint64_t> peak_record_;
  Phase phase_ = Phase::kOutside;
  uint64_t phase_began_ns_ = 0;
  uint64_t last_ns_ = 0;
};

absl::Status Counter::Add(const Record& record) {
  const uint64_t index = summary_.records++;
  const uint64_t start = summary_.header->start_ns;
  if (index == 0) phase_began_ns_ = start;
  last_ns_ = record.time_ns;
  const auto kind = static_cast<size_t>(record.kind);
  if (kind == 0 || kind >= kKinds) {
    ++summary_.unknown_records;
    return absl::OkStatus();
  }
  ++summary_.by_kind[kind];
  summary_.ended = summary_.ended || record.kind == Kind::kEnd;
  switch (record.kind) {
    case Kind::kAllocate:
      Allocate(record);
      if (live_bytes_ > summary_.peak_bytes) {
        summary_.peak_bytes = live_bytes_;
        summary_.peak_ns = Between(start, record.time_ns);
        peak_record_ = index;
      }
      break;
    case Kind::kFree:
      Free(record.address);
      break;
    case Kind::kOpBegin:
      BeginOp(record);
      break;
    case Kind::kOpEnd:
      EndOp(record);
      break;
    case Kind::kEvict:
    case Kind::kFetch: {
      Amount& moved = record.kind == Kind::kEvict ? summary_.evicted : summary_.fetched;
      ++moved.count;
      moved.sum += record.amount;
      break;
    }
    case Kind::kWait:
      if (record.detail >= kWaitCauses) break;
      ++summary_.waits[record.detail].count;
      summary_.waits[record.detail].sum += record.amount;
      break;
    case Kind::kPhase:
      EnterPhase(static_cast<Phase>(record.detail), record.time_ns);
      break;
    case Kind::kLost:
      summary_.lost_records += record.amount;
      break;
    case Kind::kPeaks:
      NotePeaks(record);
      break;
    default:
      break;
  }
  if (blocks_.size() > kMostBlocks || open_ops_ > kMostOpenOps)
    return absl::DataLossError(
        absl::StrCat(reader_.path(), " is damaged: more is alive or open at once than in any job"));
  return absl::OkStatus();
}

void Counter::NotePeaks(const Record& record) {
  AllocatorPeaks& peaks = summary_.allocator_peaks[record.detail];
  peaks.allocated = std::max(peaks.allocated, record.address);
  peaks.reserved = std::max(peaks.reserved, record.amount);
}

Counter::OpenOp* Counter::Outermost(uint16_t thread) {
  Thread& state = threads_[thread];
  return state.outside < state.open.size() ? &state.open[state.outside] : nullptr;
}

void Counter::Allocate(const Record& record) {
  Free(record.address);  // if its free was lost
  blocks_[record.address] = record.amount;
  live_bytes_ += record.amount;
  ++summary_.allocated.count;
  summary_.allocated.sum += record.amount;
  const OpenOp* op = Outermost(record.thread);
  Amount& allocated = ops_[op == nullptr ? 0 : op->number].allocated;
  ++allocated.count;
  allocated.sum += record.amount;
}

void Counter::Free(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  live_bytes_ -= found->second;
  blocks_.erase(found);
}

void Counter::BeginOp(const Record& record) {
  Thread& thread = threads_[record.thread];
  const auto kind = static_cast<OpKind>(record.detail);
  if (kind != OpKind::kOperator && thread.outside == thread.open.size()) ++thread.outside;
  thread.open.push_back({record.number, kind, record.time_ns});
  ++open_ops_;
  if (kind == OpKind::kUserRange && absl::StartsWith(reader_.TextOf(record.number), "Optimizer.step#"))
    ++summary_.steps;
}

void Counter::EndOp(const Record& record) {
  Thread& thread = threads_[record.thread];
  if (thread.open.empty()) return;
  const OpenOp op = thread.open.back();
  if (thread.outside + 1 == thread.open.size()) {
    OpFigures& figures = ops_[op.number];
    ++figures.calls;
    figures.ns += Between(op.began_ns, record.time_ns);
  }
  thread.open.pop_back();
  thread.outside = std::min(thread.outside, thread.open.size());
  --open_ops_;
}

void Counter::EnterPhase(Phase phase, uint64_t now_ns) {
  StepPart part = StepPart::kOther;
  if (phase_ == Phase::kBackward) part = StepPart::kBackward;
  if (phase_ == Phase::kOptimizer) part = StepPart::kOptimizer;
  if (phase_ == Phase::kOutside && phase == Phase::kBackward) part = StepPart::kForward;
  Amount& amount = summary_.parts[static_cast<size_t>(part)];
  ++amount.count;
  amount.sum += Between(phase_began_ns_, now_ns);
  phase_ = phase;
  phase_began_ns_ = now_ns;
}

void Counter::Finish() {
  if (summary_.records > 0) EnterPhase(Phase::kOutside, last_ns_);
  summary_.duration_ns = Between(summary_.header->start_ns, last_ns_);
  summary_.threads = threads_.size();
  summary_.live_bytes_at_end = live_bytes_;
  for (auto& [number, figures] : ops_) {
    figures.name = number == 0 ? "outside any op" : reader_.TextOf(number);
    summary_.ops.push_back(std::move(figures));
  }
  std::sort(summary_.ops.begin(), summary_.ops.end(), [](const OpFigures& a, const OpFigures& b) {
    if (a.allocated.sum != b.allocated.sum) return a.allocated.sum > b.allocated.sum;
    return a.calls != b.calls ? a.calls > b.calls : a.name < b.name;
  });
}

// Calls `each` with every record of the file.
template <typename Each>
absl::Status ForEachRecord(Reader& reader, Each each) {
  for (;;) {
    auto frame = reader.NextFrame();
    if (!frame.ok()) return frame.status();
    if (!frame->has_value()) return absl::OkStatus();
    for (const Record& record : **frame) {
      absl::Status status = each(record);
      if (!status.ok()) return status;
    }
  }
}

absl::StatusOr<BytesByClass> ClassesAt(Reader& reader, uint64_t moment) {
  absl::Status status = reader.Rewind();
  if (!status.ok()) return status;
  ClassifiedMoment classes(moment);
  status = ForEachRecord(reader, [&](const Record& record) {
    const bool accumulates = record.kind == Kind::kOpBegin &&
                             static_cast<OpKind>(record.detail) == OpKind::kBackwardNode &&
                             absl::EndsWith(reader.TextOf(record.number), "AccumulateGrad");
    classes.Add(record, accumulates);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return classes.Finish();
}

}  // namespace

const char* NameOf(StepPart part) {
  constexpr std::array<const char*, kStepParts> kNames = {"forward", "backward", "optimizer", "other"};
  return kNames[static_cast<size_t>(part)];
}

const char* NameOf(WaitCause cause) {
  constexpr std::array<const char*, kWaitCauses> kNames = {"streams", "copy out", "copy in", "turn", "pins"};
  return kNames[static_cast<size_t>(cause)];
}

const char* NameOf(Kind kind) {
  constexpr std::array<const char*, kKinds> kNames = {
      "none",  "thread", "allocate", "free",  "out of memory", "op begin", "tensor", "op end",
      "evict", "fetch",  "wait",     "phase", "sum",           "lost",     "end",    "peaks"};
  return kNames[static_cast<size_t>(kind)];
}

absl::StatusOr<Summary> Summarise(Reader& reader) {
  Summary summary;
  summary.file_bytes = reader.file_bytes();
  if (reader.header() == nullptr) {
    summary.cut_bytes = reader.cut_bytes();
    return summary;
  }
  summary.header = *reader.header();
  Counter counter(reader, summary);
  absl::Status status = ForEachRecord(reader, [&](const Record& record) { return counter.Add(record); });
  if (!status.ok()) return status;
  counter.Finish();
  summary.cut_bytes = reader.cut_bytes();
  if (const std::optional<uint64_t> peak = counter.peak_record()) {
    absl::StatusOr<BytesByClass> classes = ClassesAt(reader, *peak);
    if (!classes.ok()) return classes.status();
    summary.classes_at_peak = *classes;
  }
  return summary;
}

}  // namespace weir::trace
