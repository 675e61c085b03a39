#include "tools/emulated_gpu/device/fault_points.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/fault_plan.h"
#include "tools/emulated_gpu/device/lifecycle.h"
#include "tools/emulated_gpu/device/profile.h"
#include "tools/emulated_gpu/device/reports.h"

namespace weir::emulated {
namespace {

struct Progress {
  uint64_t seen = 0;  // calls since the count began
  uint64_t failed = 0;
  bool counting = true;  // false until `after` was called
};

struct State {
  bool planned = false;
  std::string mistake;
  FaultPlan plan;
  std::mutex mutex;
  std::vector<Progress> progress;         // guarded by mutex; of each rule
  std::map<std::string, uint64_t> calls;  // guarded by mutex; seeded faults only
};

State& Faults() {
  static State& state = *[] {
    auto* made = new State;
    const char* spec = std::getenv("WEIR_EMULATED_FAULTS");
    if (spec == nullptr || *spec == '\0') return made;
    made->mistake = ReadFaultPlan(spec, &made->plan);
    made->planned = made->mistake.empty();
    for (const FaultRule& rule : made->plan.rules) made->progress.push_back({0, 0, rule.after.empty()});
    return made;
  }();
  return state;
}

// What takes memory of the device or of the host, and what a full one answers.
struct Fallible {
  const char* call;
  Status code;
};
constexpr Fallible kFallible[] = {
    {"cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY},    {"cuMemMap", CUDA_ERROR_OUT_OF_MEMORY},
    {"cuMemSetAccess", CUDA_ERROR_NOT_READY},     {"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY},
    {"cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY}, {"cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY},
    {"cudaMalloc", CUDA_ERROR_OUT_OF_MEMORY},     {"cudaHostAlloc", CUDA_ERROR_OUT_OF_MEMORY},
};

// Evenly spread over [0, 1) (splitmix64).
double Draw(uint64_t seed, const std::string& call, uint64_t number) {
  uint64_t x = seed + number * 0x9e3779b97f4a7c15;
  for (const char letter : call) x = (x ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

Status Fail(const std::string& call, uint64_t number, Status code, const std::string& why) {
  const char* name = nullptr;
  cuGetErrorName(code, &name);
  Counted().faults.fetch_add(1, std::memory_order_relaxed);
  Note("fault: %s (call %lu) fails with %s, as planned by %s", call.c_str(), number, name, why.c_str());
  return code;
}

Status SeededFault(State& state, const std::string& call) {
  for (const Fallible& fallible : kFallible) {
    if (call != fallible.call) continue;
    const uint64_t number = ++state.calls[call];
    const SeededFaults& seeded = *state.plan.seeded;
    if (Draw(seeded.seed, call, number) >= seeded.rate) break;
    return Fail(call, number, fallible.code, "seed:" + std::to_string(seeded.seed));
  }
  return CUDA_SUCCESS;
}

// Whether the rule makes this call fail. Counts it.
bool Fires(const FaultRule& rule, Progress& progress, const std::string& call) {
  bool fires = false;
  if (rule.call == call && progress.counting) {
    ++progress.seen;
    fires =
        rule.repeat == FaultRule::Repeat::kForever ? progress.seen >= rule.nth : progress.seen == rule.nth;
    if (fires && rule.repeat == FaultRule::Repeat::kOnce && progress.failed > 0) fires = false;
    progress.failed += fires;
  }
  if (rule.after == call) progress = {0, progress.failed, true};
  return fires;
}

}  // namespace

const char* FaultsMistake() { return Faults().mistake.c_str(); }

bool FaultsPlanned() {
  static const bool planned = Faults().planned;
  return planned;
}

Status NextFault(const char* entry_point) {
  const std::string call = BaseName(entry_point);
  State& state = Faults();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.plan.seeded) return SeededFault(state, call);
  Status status = CUDA_SUCCESS;
  for (size_t i = 0; i < state.plan.rules.size(); ++i) {
    const FaultRule& rule = state.plan.rules[i];
    if (!Fires(rule, state.progress[i], call) || status != CUDA_SUCCESS) continue;
    status = Fail(call, state.progress[i].seen, rule.code, rule.text);
  }
  return status;
}

size_t DeviceCapacity() { return FaultsPlanned() ? Faults().plan.capacity : SIZE_MAX; }

void ReportedMemory(size_t* free, size_t* total) {
  const size_t used = UsedDeviceBytes(PhysicalDevice(CurrentDevice()));
  FaultPlan::MemoryInfo info{Settings().vram_bytes - std::min(used, Settings().vram_bytes),
                             Settings().vram_bytes};
  if (FaultsPlanned() && Faults().plan.memory_info) info = *Faults().plan.memory_info;
  if (free != nullptr) *free = info.free;
  if (total != nullptr) *total = info.total;
}

void FaultsAtExit() {
  if (!FaultsPlanned()) return;
  State& state = Faults();
  for (size_t i = 0; i < state.plan.rules.size(); ++i) {
    if (state.progress[i].failed == 0)
      Note("fault: nothing came of %s, %lu calls", state.plan.rules[i].text.c_str(), state.progress[i].seen);
  }
  if (state.plan.teardown) SetSticky(CUDA_ERROR_DEINITIALIZED);
}

}  // namespace weir::emulated

// For `weir run --faults`: 0 if `spec` is a plan, else 1 and what is wrong with it.
extern "C" __attribute__((visibility("default"))) int weir_emulated_check_faults(const char* spec, char* text,
                                                                                 size_t room) {
  weir::emulated::FaultPlan plan;
  const std::string mistake = weir::emulated::ReadFaultPlan(spec, &plan);
  if (room > 0) text[mistake.copy(text, room - 1)] = '\0';
  return mistake.empty() ? 0 : 1;
}
