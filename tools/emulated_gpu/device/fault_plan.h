// Planned failures, from WEIR_EMULATED_FAULTS: `seed:N`, `seed:N,RATE` or the name of a file. Pure but for the file.
//
// A file has one rule per line; `#` begins a comment:
//   CALL N CODE [once | forever]              the Nth call of that name fails, or it and all later ones
//   CALL N CODE [once | each] after OTHER     counted anew after each call of OTHER; only the first time, or each time
//   memory_info FREE TOTAL                    what cuMemGetInfo and cudaMemGetInfo say (sizes such as 2GiB)
//   capacity SIZE                             device memory that can be had, whatever the device says it has
//   teardown                                  from the exit handler on, every call fails with DEINITIALIZED
// CALL is an entry point of cuda.h or the runtime, without its version (cuMemCreate, cudaMalloc); CODE is the end of a
// CUDA_ERROR_ name (OUT_OF_MEMORY). The default is `once`.
//
// With a seed, calls that take memory fail at random, each with the probability RATE (0.01 by default), with the code
// that a full device gives. The same seed fails the same calls, counted by name.
#ifndef WEIR_EMULATED_GPU_DEVICE_FAULT_PLAN_H_
#define WEIR_EMULATED_GPU_DEVICE_FAULT_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/emulated_gpu/device/status.h"

namespace weir::emulated {

struct FaultRule {
  enum class Repeat { kOnce, kEach, kForever };
  std::string call;
  uint64_t nth = 1;
  Status code = CUDA_ERROR_UNKNOWN;
  Repeat repeat = Repeat::kOnce;
  std::string after;  // "" if the count starts with the process
  std::string text;   // place and words, for messages
};

struct SeededFaults {
  uint64_t seed = 0;
  double rate = 0.01;
};

struct FaultPlan {
  std::vector<FaultRule> rules;
  std::optional<SeededFaults> seeded;
  struct MemoryInfo {
    size_t free, total;
  };
  std::optional<MemoryInfo> memory_info;
  size_t capacity = SIZE_MAX;
  bool teardown = false;
};

// What is wrong, with file and line and what was expected; "" and a filled plan if all is well.
std::string ReadFaultPlan(const std::string& spec, FaultPlan* plan);

// "cuMemAlloc_v2" and "cuMemAlloc" are one call.
std::string BaseName(const std::string& entry_point);

}  // namespace weir::emulated

#endif
