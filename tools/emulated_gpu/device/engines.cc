#include "tools/emulated_gpu/device/engines.h"

#include <algorithm>

#include "tools/emulated_gpu/device/accounting.h"
#include "tools/emulated_gpu/device/busy_times.h"
#include "tools/emulated_gpu/device/contexts.h"
#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

// Guarded by the lock of order.h.
struct Device {
  BusyTimes busy[kEngines];
  // What copies lost to copies of the other direction that were enqueued after them, in bytes. Their times are told
  // already, so the next copy of their engine carries it, less what would have been done while the engine stood still.
  double owed[kEngines] = {};
  Nanos latest_done = 0;
  Nanos idle_for_host = 0, idle_for_others = 0;
};
auto* const devices = new Device[kMostDevices];

size_t Index(Engine engine) { return static_cast<size_t>(engine); }
bool Copies(Engine engine) { return engine == Engine::kCopyIn || engine == Engine::kCopyOut; }
Engine Other(Engine engine) { return engine == Engine::kCopyIn ? Engine::kCopyOut : Engine::kCopyIn; }

// How long a copy that begins at `begin` takes: slower in those parts in which the other copy engine is busy.
Nanos CopyTime(const Device& device, const Demand& demand, double bytes, Nanos begin) {
  Nanos at = begin + demand.time;
  device.busy[Index(Other(demand.engine))].ForEachPart(at, [&](Interval part, bool both) {
    const double rate = both ? demand.both_gbps : demand.gbps;
    const Nanos needs = TimeFor(bytes, rate);
    if (needs <= part.end - part.begin) {
      at = part.begin + needs;
      return false;
    }
    bytes -= static_cast<double>(part.end - part.begin) * rate;
    at = part.end;
    return true;
  });
  return at - begin;
}

// What the other direction loses to a copy in `taken`: it was promised its rate alone.
void Owe(Device& device, Engine engine, const Interval& taken) {
  const Costs& costs = Settings().profile->costs;
  const Engine other = Other(engine);
  const double loss =
      other == Engine::kCopyIn ? costs.h2d_gbps - costs.h2d_both_gbps : costs.d2h_gbps - costs.d2h_both_gbps;
  if (loss <= 0) return;
  device.busy[Index(other)].ForEachPart(taken.begin, [&](Interval part, bool busy) {
    const Nanos end = std::min(part.end, taken.end);
    if (busy && end > part.begin) device.owed[Index(other)] += static_cast<double>(end - part.begin) * loss;
    return part.end < taken.end;
  });
}

Interval RunCopy(Device& device, const Demand& demand, Nanos ready) {
  double& owed = device.owed[Index(demand.engine)];
  const Nanos still = std::max<Nanos>(ready - device.busy[Index(demand.engine)].end(), 0);
  const double bytes = demand.bytes + std::max(owed - static_cast<double>(still) * demand.gbps, 0.0);
  owed = 0;
  const Interval taken = device.busy[Index(demand.engine)].Take(
      ready, [&](Nanos begin) { return CopyTime(device, demand, bytes, begin); });
  Owe(device, demand.engine, taken);
  return taken;
}

}  // namespace

const char* NameOf(Engine engine) {
  constexpr const char* kNames[kEngines] = {"SMs", "copy in", "copy out", "mapper", "NVMe"};
  return kNames[Index(engine)];
}

Nanos ReachesDevice() { return HostNow() + Micros(Settings().profile->costs.start_us); }

Nanos ScheduleLocked(const Demand& demand, int number, Nanos stream_done) {
  Device& device = devices[number];
  const Nanos call = ReachesDevice(), ready = std::max(call, stream_done);
  BusyTimes& busy = device.busy[Index(demand.engine)];
  const Nanos end_before = busy.end();
  const Interval taken = Copies(demand.engine) ? RunCopy(device, demand, ready)
                                               : busy.Take(ready, [&](Nanos) { return demand.time; });
  if (demand.engine == Engine::kMultiprocessors && taken.begin > end_before) {
    (call >= stream_done ? device.idle_for_host : device.idle_for_others) += taken.begin - end_before;
  }
  device.latest_done = std::max(device.latest_done, taken.end);
  NoteBusy(PhysicalDevice(number), device.busy[Index(Engine::kMultiprocessors)].busy(), device.latest_done);
  return taken.end;
}

Nanos RunForHostLocked(Engine engine, Nanos time) {
  return devices[0].busy[Index(engine)].Take(HostNow(), [&](Nanos) { return time; }).end;
}

Nanos LatestDoneLocked(int device) { return devices[device].latest_done; }

Nanos LatestDoneLocked() {
  Nanos latest = 0;
  for (int device = 0; device < DeviceCount(); ++device)
    latest = std::max(latest, devices[device].latest_done);
  return latest;
}

Usage UsageLocked() {
  Usage usage{};
  const int count = std::max(DeviceCount(), 1);
  for (int device = 0; device < count; ++device) {
    for (size_t i = 0; i < kEngines; ++i) usage.busy[i] += devices[device].busy[i].busy();
    usage.idle_for_host += devices[device].idle_for_host;
    usage.idle_for_others += devices[device].idle_for_others;
  }
  for (Engine each : {Engine::kMultiprocessors, Engine::kCopyIn, Engine::kCopyOut})
    usage.busy[Index(each)] /= count;
  usage.idle_for_host /= count;
  usage.idle_for_others /= count;
  return usage;
}

}  // namespace weir::emulated
