// A trace in figures. Two passes over the file: the first counts and finds the peak, the second sorts what was alive at it by
// class (tensor_classes.h).
//
// Memory: one entry per block alive at once (at most kMostBlocks), per op open at once (kMostOpenOps) and per name.
// One thread.
#ifndef WEIR_TRACE_SUMMARY_H_
#define WEIR_TRACE_SUMMARY_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace/format.h"
#include "trace/reader.h"
#include "trace/tensor_classes.h"

namespace weir::trace {

inline constexpr size_t kMostBlocks = size_t{1} << 22;
inline constexpr size_t kMostOpenOps = size_t{1} << 20;

// A phase as a person would name it: what is outside of backward and optimizer is forward when backward follows.
enum class StepPart : uint8_t { kForward, kBackward, kOptimizer, kOther };
inline constexpr size_t kStepParts = 4;
const char* NameOf(StepPart part);
const char* NameOf(WaitCause cause);
const char* NameOf(Kind kind);

struct Amount {
  uint64_t count = 0;
  uint64_t sum = 0;  // bytes, or ns
};

// Of all calls of an op that no other op had called (autograd's nodes and ranges of the user do not count as ops).
struct OpFigures {
  std::string name;
  uint64_t calls = 0;
  uint64_t ns = 0;  // on the host
  Amount allocated;
};

// By the allocator's own count, which rounds sizes up: the most that any kPeaks says.
struct AllocatorPeaks {
  uint64_t allocated = 0, reserved = 0;
};

struct Summary {
  std::optional<FileHeader> header;  // none: the trace was cut inside it
  uint64_t file_bytes = 0;
  uint64_t cut_bytes = 0;
  bool ended = false;  // in order; else the job was killed, or still runs, or the disk was full
  uint64_t duration_ns = 0;
  uint64_t threads = 0;
  uint64_t records = 0;
  std::array<uint64_t, kKinds> by_kind{};
  uint64_t unknown_records = 0;
  uint64_t lost_records = 0;

  Amount allocated;
  uint64_t peak_bytes = 0;
  uint64_t peak_ns = 0;  // after the trace began
  uint64_t live_bytes_at_end = 0;
  std::map<int, AllocatorPeaks> allocator_peaks;  // by device; empty: the trace has none
  BytesByClass classes_at_peak{};

  std::vector<OpFigures> ops;  // those that allocated most first
  Amount evicted, fetched;
  std::array<Amount, kWaitCauses> waits{};
  std::array<Amount, kStepParts> parts{};
  uint64_t steps = 0;  // of an optimizer

  // Records that are not Tensors of another one.
  uint64_t events() const { return records - by_kind[static_cast<size_t>(Kind::kTensor)]; }
};

// Fails as the reader does, and with DATA_LOSS for what no job does: too much alive or open at once.
absl::StatusOr<Summary> Summarise(Reader& reader);

}  // namespace weir::trace

#endif  // WEIR_TRACE_SUMMARY_H_
