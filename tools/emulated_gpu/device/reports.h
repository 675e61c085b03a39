// What the emulator tells on stderr and counts. Any thread.
//
// A report is something a real GPU would have punished (use of dead handles, touch of memory that is not
// there, VMM misuse): one line `weir: emulated GPU: report: ...`. A note is one line without that weight.
// WEIR_EMULATED_REPORTS=count only counts reports; abort ends the process at the first, with exit code 70.
#ifndef WEIR_EMULATED_GPU_DEVICE_REPORTS_H_
#define WEIR_EMULATED_GPU_DEVICE_REPORTS_H_

#include <atomic>
#include <cstdint>

namespace weir::emulated {

struct Counters {
  std::atomic<uint64_t> launches{
      0};  // kernel launches and cuBLAS calls; with kernels cpu: ops run on the CPU
  std::atomic<uint64_t> unchecked_launches{0};  // kernels whose parameters are not known
  std::atomic<uint64_t> copies{0};              // copies and memsets
  std::atomic<uint64_t> copied_bytes{0};
  std::atomic<uint64_t> faults{0};  // planned failures
  std::atomic<uint64_t> reports{0};
};
Counters& Counted();

[[gnu::format(printf, 1, 2)]] void Report(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void Note(const char* format, ...);

// One line for the first call of an entry point that is not emulated, by name.
void NoteNotSupported(const char* name);

// Name of the op that this thread runs (kernels cpu), or "". Set by the CPU kernels.
const char* CurrentOp();
void SetCurrentOp(const char* name);

}  // namespace weir::emulated

#endif
