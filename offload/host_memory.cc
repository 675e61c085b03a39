#include "offload/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weir {
namespace {

std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t value = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &value))
    return std::nullopt;  // "max" is no number: no limit
  return value;
}

// Value of `key` in a file of "key value" lines (kB in meminfo, bytes in memory.stat).
std::optional<uint64_t> ReadField(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

// The process's folder below a hierarchy: `controller` is "" for v2, "memory" for v1.
std::string CgroupFolder(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) return parts[2];
  }
  return "/";
}

struct Cgroup {
  std::string mount, controller;
  std::vector<std::string> limits;
  std::string usage, cache_field;
  std::string
      inherited;  // in memory.stat: the tightest limit of groups above, of which a container may not see the files
};

// The limits of the group in folder `at`, by name.
std::vector<std::pair<std::string, uint64_t>> LimitsOf(const Cgroup& group, const std::string& at) {
  std::vector<std::pair<std::string, uint64_t>> limits;
  for (const std::string& name : group.limits) {
    if (const std::optional<uint64_t> limit = ReadNumber(at + name)) limits.emplace_back(name, *limit);
  }
  if (group.inherited.empty()) return limits;
  if (const std::optional<uint64_t> limit = ReadField(at + "memory.stat", group.inherited))
    limits.emplace_back(group.inherited, *limit);
  return limits;
}

// The tightest limit on the way from the process's group up to the root of the hierarchy.
void ApplyCgroup(const std::string& root, const Cgroup& group, HostMemory& memory) {
  std::string mount = root + group.mount;
  std::string folder = CgroupFolder(root, group.controller);
  for (;;) {
    std::string at = absl::StrCat(mount, folder == "/" ? "" : folder, "/");
    if (const std::optional<uint64_t> usage = ReadNumber(at + group.usage)) {
      // Page cache is given up under pressure.
      const uint64_t cache = ReadField(at + "memory.stat", group.cache_field).value_or(0);
      const Bytes taken = SaturatingSubtract(Bytes(*usage), Bytes(cache));
      for (const auto& [name, limit] : LimitsOf(group, at)) {
        const Bytes available = SaturatingSubtract(Bytes(limit), taken);
        if (available < memory.available) memory = HostMemory{available, absl::StrCat("cgroup ", name)};
      }
    }
    if (folder == "/" || folder.empty()) return;
    size_t slash = folder.rfind('/');
    folder = slash == 0 || slash == std::string::npos ? "/" : folder.substr(0, slash);
  }
}

}  // namespace

absl::StatusOr<HostMemory> AvailableHostMemory(const std::string& root) {
  std::optional<uint64_t> available = ReadField(root + "/proc/meminfo", "MemAvailable:");
  if (!available.has_value()) return absl::NotFoundError("no MemAvailable in /proc/meminfo");
  HostMemory memory{KiB(*available), "MemAvailable"};
  // Above memory.high the kernel slows a process down until it gives memory back, and pinned memory cannot be.
  ApplyCgroup(
      root,
      Cgroup{"/sys/fs/cgroup", "", {"memory.max", "memory.high"}, "memory.current", "inactive_file", ""},
      memory);
  ApplyCgroup(root,
              Cgroup{"/sys/fs/cgroup/memory",
                     "memory",
                     {"memory.limit_in_bytes"},
                     "memory.usage_in_bytes",
                     "total_inactive_file",
                     "hierarchical_memory_limit"},
              memory);
  return memory;
}

std::optional<Bytes> LockedMemoryLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return Bytes(limit.rlim_cur);
}

Bytes DefaultRamBudget(Bytes available, int local_ranks) {
  return available / 2 / static_cast<uint64_t>(std::max(local_ranks, 1));
}

}  // namespace weir
