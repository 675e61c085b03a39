// How much host memory this process may still take: what the machine has available, or less where a container says so.
// Reads /proc/meminfo and the cgroup (v2 and v1) of the process. No caching; any thread.
#ifndef WEIR_OFFLOAD_HOST_MEMORY_H_
#define WEIR_OFFLOAD_HOST_MEMORY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"

namespace weir {

struct HostMemory {
  Bytes available;
  std::string limited_by;  // "MemAvailable", "cgroup memory.max" ...
};

// `root` is where /proc and /sys are found ("" in production; a folder in tests). NOT_FOUND without /proc/meminfo.
absl::StatusOr<HostMemory> AvailableHostMemory(const std::string& root = "");

// `ulimit -l` of this process; nullopt: none. What the GPU's driver pins does not count there on a plain Linux machine
// (research/cuda-facts.md, cases.md C91), so it is no part of what is available; it explains a driver that refuses (C82).
std::optional<Bytes> LockedMemoryLimit();

// The default RAM budget: half of what is available, divided by the processes of the job on this machine.
Bytes DefaultRamBudget(Bytes available, int local_ranks);

}  // namespace weir

#endif  // WEIR_OFFLOAD_HOST_MEMORY_H_
