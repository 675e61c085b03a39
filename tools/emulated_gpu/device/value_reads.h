// Kernels `none`: which values the program read that were not computed, and what that means for the run's figures. Sizes,
// counts and shapes are those of a card as long as no such value decided a shape or a branch. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_VALUE_READS_H_
#define WEIR_EMULATED_GPU_DEVICE_VALUE_READS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::emulated {

// What a copy carries, as far as the operator around it tells.
enum class Carried { kUnknown, kIntegers, kFloats };

// What the figures of this run are. The value of a float may decide something (a loss that is not finite skips a step), but
// mostly it is printed; a program cannot be seen to do either. So a run that read floats only is exact under a condition
// that is told; one that read integers, booleans or bytes of unknown type, which mostly decide, is an estimate.
enum class Verdict { kExact, kExactUnlessFloatsDecide, kEstimate };

struct ValueRead {
  std::string op;     // of torch, or ""
  std::string place;  // of the program: "train.py:31", else "function (library)"
  bool floats = false;
  uint64_t times = 0, bytes = 0;
};

// The program reads bytes that are not known. What torch reads to make a tensor's text for a print decides nothing and does
// not count. The caller holds no lock.
void NoteRead(Carried carried, size_t bytes);

Verdict VerdictOfRun();
// Each place once, those that make an estimate first, then in the order of their first reads.
std::vector<ValueRead> ReadsOfRun();

// With kernels `none` and WEIR_EMULATED_TIMING=1: some lines on stderr.
void ReadsAtExit();

// Between the two, reads of this thread do not count: an operator reads, and its results will be computed. If they were not
// in the end, the reads count after all. They nest.
void ReadsStopCounting();
void ReadsCountAgain(bool computed);

}  // namespace weir::emulated

#endif
