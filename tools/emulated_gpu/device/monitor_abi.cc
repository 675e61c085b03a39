#include "tools/emulated_gpu/device/monitor_abi.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/attributes.h"
#include "tools/emulated_gpu/device/profile.h"

using namespace weir::emulated;

namespace {

constexpr Nanos kWindow = 100'000'000;

// Of one process on one card, as the last window ended.
struct Window {
  Nanos busy = 0, now = 0;
  unsigned percent = 0;
};
struct Windows {
  std::mutex mutex;
  std::map<std::pair<int, uint64_t>, Window> of_process[kMostDevices];  // guarded by mutex; by pid and start
};
auto& windows = *new Windows;

unsigned BusyPercent(int device, const std::vector<ProcessUse>& processes) {
  std::lock_guard<std::mutex> lock(windows.mutex);
  std::map<std::pair<int, uint64_t>, Window> seen;
  unsigned sum = 0;
  for (const ProcessUse& process : processes) {
    Window window = windows.of_process[device][{process.pid, process.number}];
    if (process.now - window.now >= kWindow || window.now == 0) {
      const Nanos whole = std::max<Nanos>(process.now - window.now, 1);
      window = {process.busy, process.now, static_cast<unsigned>(100 * (process.busy - window.busy) / whole)};
    }
    sum += window.percent;
    seen[{process.pid, process.number}] = window;
  }
  windows.of_process[device].swap(seen);
  return std::min(sum, 100u);
}

bool Exists(int index) { return index >= 0 && index < Settings().devices && Settings().mistake.empty(); }

}  // namespace

#define WEIR_EXPORTED extern "C" __attribute__((visibility("default")))

WEIR_EXPORTED int weir_emulated_cards() { return Settings().mistake.empty() ? Settings().devices : 0; }

WEIR_EXPORTED int weir_emulated_card(int index, WeirEmulatedCard* card) {
  if (!Exists(index)) return 0;
  const Profile& profile = *Settings().profile;
  *card = {};
  DeviceName(card->name, sizeof card->name);
  DeviceUuid(reinterpret_cast<char*>(card->uuid), index);
  card->bus = static_cast<unsigned>(index);
  card->total = Settings().vram_bytes;
  card->used = UsedDeviceBytes(index);
  card->major = profile.major;
  card->minor = profile.minor;
  card->multiprocessors = static_cast<unsigned>(profile.multiprocessors);
  card->clock_mhz = static_cast<unsigned>(profile.clock_khz) / 1000;
  card->memory_clock_mhz = static_cast<unsigned>(profile.memory_clock_khz) / 1000;
  card->memory_bus_bits = static_cast<unsigned>(profile.memory_bus_bits);
  card->busy_percent = BusyPercent(index, ProcessesOn(index));
  card->peers = HasPeers() ? 1 : 0;
  return 1;
}

WEIR_EXPORTED int weir_emulated_processes(int index, WeirEmulatedProcess* list, int room) {
  if (!Exists(index)) return 0;
  const std::vector<ProcessUse> processes = ProcessesOn(index);
  const int count = static_cast<int>(processes.size());
  for (int i = 0; i < count && i < room; ++i) list[i] = {processes[i].pid, processes[i].bytes};
  return count;
}
