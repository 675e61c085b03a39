// Random programs of work on four streams, for the fuzz test of the emulated GPU: what they are, how correct ones are made,
// and an order check of their own, on sets of whole works, that knows nothing of the emulator's.
//
// Stream 0 is the legacy one, 1 is blocking, 2 and 3 are not. A buffer is 64 units of kUnit bytes, and a set of units is one
// word. Buffers 0 and 1 are device allocations, 2 and 3 are frames with two mappings each, 4 and 5 are pinned memory.
#ifndef WEIR_TESTS_EMULATED_GPU_SCHEDULE_PROGRAM_H_
#define WEIR_TESTS_EMULATED_GPU_SCHEDULE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::emulated {

inline constexpr int kStreams = 4, kBuffers = 6;
inline constexpr int kAllocations = 2, kPinned = 4;  // first frame, first pinned buffer
inline constexpr int kUnits = 64, kUnit = 64, kColumns = 8;
inline constexpr int kBufferBytes = kUnits * kUnit;
using Units = uint64_t;

// Units [first, first + count), or with `columns` in each of the kColumns rows of kColumns units: these columns.
struct Part {
  int buffer = 0, mapping = 0, first = 0, count = 0;
  bool columns = false, write = false;
  Units units() const;
};

enum class Kind {
  kKernel,
  kCopy,
  kMemset,  // on a stream
  kRecord,
  kWait,  // of an event, on a stream
  kSyncEvent,
  kSyncStream,
  kSyncDevice,
  kPoll,     // kPoll: queries the event until it is complete
  kReplace,  // frees an allocation and makes a new one of zeros
  kMove,     // maps a frame's second mapping at another address
};

struct Line {
  Kind kind = Kind::kKernel;
  int stream = 0, event = 0, buffer = 0;
  uint64_t number = 0;  // of the work: what a kernel writes depends on it
  std::vector<Part> parts;
};
using Program = std::vector<Line>;

Program RandomProgram(uint64_t seed);
std::string Text(const Program& program);
bool IsWait(const Line& line);

// True when no two works conflict without order, and nothing goes while it is in flight.
bool IsOrdered(const Program& program);

// The bytes of all buffers after each line ran when it was enqueued.
std::vector<std::vector<uint8_t>> Reference(const Program& program);
// What a kernel, copy or memset does; `at` gives a buffer's bytes.
template <typename At>
void RunWork(const Line& line, At at);

// Removes lines as long as `fails` holds.
template <typename Fails>
Program Shrink(Program program, Fails fails) {
  for (size_t step = program.size() / 2; step > 0;) {
    bool removed = false;
    for (size_t i = 0; i + step <= program.size();) {
      Program smaller = program;
      smaller.erase(smaller.begin() + static_cast<std::ptrdiff_t>(i),
                    smaller.begin() + static_cast<std::ptrdiff_t>(i + step));
      if (fails(smaller)) {
        program = smaller;
        removed = true;
      } else {
        i += step;
      }
    }
    if (!removed || step > 1) step /= 2;
  }
  return program;
}

template <typename At>
void RunWork(const Line& line, At at) {
  uint64_t sum = line.number * 0x9E3779B97F4A7C15u;
  const auto each = [](const Part& part, auto visit) {
    const Units units = part.units();
    for (int i = 0; i < kBufferBytes; ++i) {
      if ((units >> (i / kUnit) & 1) != 0) visit(i);
    }
  };
  if (line.kind == Kind::kCopy) {
    const Part &from = line.parts[0], &to = line.parts[1];
    for (int i = 0; i < from.count * kUnit; ++i)
      at(to)[to.first * kUnit + i] = at(from)[from.first * kUnit + i];
    return;
  }
  if (line.kind == Kind::kMemset) {
    each(line.parts[0], [&](int i) { at(line.parts[0])[i] = static_cast<uint8_t>(line.number); });
    return;
  }
  for (const Part& part : line.parts) {
    if (!part.write) each(part, [&](int i) { sum = (sum ^ at(part)[i]) * 0x100000001B3u; });
  }
  for (const Part& part : line.parts) {
    if (part.write) each(part, [&](int i) { at(part)[i] = static_cast<uint8_t>(sum >> (i % 8 * 8)); });
  }
}

}  // namespace weir::emulated

#endif
