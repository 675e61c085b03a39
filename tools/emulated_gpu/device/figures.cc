#include "tools/emulated_gpu/device/figures.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/overcommit.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"
#include "tools/emulated_gpu/device/timing.h"
#include "tools/emulated_gpu/device/value_reads.h"

namespace weir::emulated {
namespace {

std::string FileOfThisProcess(std::string path) {
  const size_t place = path.find("%p");
  if (place != std::string::npos) path.replace(place, 2, std::to_string(getpid()));
  return path;
}

size_t MostOfAnyCard() {
  size_t most = 0;
  for (int device = 0; device < kMostDevices; ++device) most = std::max(most, PeakCardBytes(device));
  return most;
}

// A line "exact", "exact-unless-floats" or "estimate", then one for each place that makes it so.
void WriteValues(FILE* file) {
  const char* const names[] = {"exact", "exact-unless-floats-decide", "estimate"};
  std::fprintf(file, "values %s\n", names[static_cast<int>(VerdictOfRun())]);
  for (const ValueRead& read : ReadsOfRun()) {
    std::fprintf(file, "read %d %s at %s\n", read.floats ? 1 : 0,
                 read.op.empty() ? "a copy" : read.op.c_str(), read.place.c_str());
  }
}

void Write(FILE* file, const char* key, uint64_t value) { std::fprintf(file, "%s %lu\n", key, value); }

}  // namespace

void WriteFigures(bool ended) {
  const Options& options = Settings();
  if (options.figures.empty()) return;
  const std::string path = FileOfThisProcess(options.figures);
  FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    Note("figures cannot be written to %s: %s", path.c_str(), std::strerror(errno));
    return;
  }
  const StepTimes steps = TimesOfSteps();
  std::fprintf(file, "device_name %s\n", options.profile->device_name.c_str());
  Write(file, "ended", ended ? 1 : 0);
  Write(file, "vram_bytes", options.vram_bytes);
  Write(file, "context_bytes", options.context_bytes);
  Write(file, "card_peak_bytes", MostOfAnyCard());
  Write(file, "granted_beyond_card", GrantedBeyondCard());
  Write(file, "reports", Counted().reports);
  Write(file, "steps", steps.count);
  Write(file, "step_ns", static_cast<uint64_t>(steps.median));
  Write(file, "total_ns", static_cast<uint64_t>(TimeInAll()));
  WriteValues(file);
  if (std::fclose(file) != 0) Note("figures cannot be written to %s: %s", path.c_str(), std::strerror(errno));
}

}  // namespace weir::emulated
