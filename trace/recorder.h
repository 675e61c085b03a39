// Records what happens to memory, for WEIR_TRACE. One trace at a time in a process.
//
// Without a trace, On() is one relaxed load and everything else here does nothing. With one, a record is copied into a buffer
// under a short lock (LockRank::kTrace, so it may be written with any other lock of Weir held but the log's), in the
// order in which things happen; no record waits for the disk. One thread, the only one that Weir has, compresses full
// buffers, and after kFlushAge what there is, and writes them. It calls no driver and reads nothing of Weir, so what it
// does and when never shows in the job (R16).
//
// When the disk is slower than the job for long, records are dropped and their number is recorded. When it is full the trace
// ends, with one line on the log, and the job goes on. A forked child has no trace.
#ifndef WEIR_TRACE_RECORDER_H_
#define WEIR_TRACE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "allocator/base/units.h"
#include "trace/format.h"

namespace weir::trace {

inline constexpr absl::Duration kFlushAge = absl::Milliseconds(200);

namespace internal {
inline std::atomic<bool> on{false};
}  // namespace internal

// Whether there is a trace.
inline bool On() { return internal::on.load(std::memory_order_relaxed); }

// The time of the calling thread, in ns. Any thread that records may ask.
struct Clock {
  ClockKind kind;
  int64_t (*now)();
};
// The machine's monotonic clock.
Clock MachineClock();

// Begins a trace in a new file (trace_file.h), whose times are those of `clock`. Fails with a message that names the path and
// the reason.
absl::Status Start(const std::string& path, absl::string_view rank, Clock clock = MachineClock());
// Ends it: everything recorded so far is in the file when it returns. Without a trace, and in a forked child, nothing happens.
void Stop();
// Threads that the trace has started in this process: 0 or 1.
int ThreadsStarted();

// The time of records, by the clock of the trace.
uint64_t Now();

// The number of a string; 0 without a trace, or when there are too many.
uint32_t NumberOf(absl::string_view text);

// ---- what happens. Any thread; nothing fails.
void RecordAllocation(int device, DeviceAddr address, Bytes bytes, Stream stream);
void RecordFree(DeviceAddr address);
void RecordOutOfMemory(int device, Bytes bytes);
void RecordPeaks(int device, Bytes allocated, Bytes reserved);
void RecordMove(Kind kind, int device, DeviceAddr address, Bytes bytes);  // kEvict, kFetch
void RecordWait(WaitCause cause, uint64_t began_ns);
void RecordPhase(Phase phase);
void RecordSum(DeviceAddr address, uint64_t sum, uint32_t result);

struct Tensor {
  DeviceAddr storage;
  Bytes bytes;
  uint8_t flags;  // TensorFlags
};
void RecordOpBegin(uint32_t name, OpKind kind, int64_t sequence, std::span<const Tensor> arguments);
void RecordOpEnd(uint32_t name, std::span<const Tensor> results);

}  // namespace weir::trace

#endif  // WEIR_TRACE_RECORDER_H_
