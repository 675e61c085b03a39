// The engines of each device in virtual time: what runs when. All calls hold the lock of order.h. The mapper and the drive are
// those of the machine, whichever device the work is for.
//
// Each engine does one thing at a time. A work starts at the earliest of its engine's gaps after it is ready: when its
// stream's earlier work and what it waits for is done, and its call has reached the device.
#ifndef WEIR_EMULATED_GPU_DEVICE_ENGINES_H_
#define WEIR_EMULATED_GPU_DEVICE_ENGINES_H_

#include <cstddef>

#include "tools/emulated_gpu/device/virtual_clock.h"

namespace weir::emulated {

enum class Engine { kMultiprocessors, kCopyIn, kCopyOut, kMapper, kNvme };
inline constexpr size_t kEngines = 5;
const char* NameOf(Engine engine);

// What a work asks of an engine. For the copy engines `time` is the fixed part and `bytes` are moved at `gbps`, `both_gbps`
// while the other copy engine is busy; others take `time`.
struct Demand {
  Engine engine = Engine::kMultiprocessors;
  Nanos time = 0;
  double bytes = 0, gbps = 1, both_gbps = 1;
};

// Work of a stream that is ready when `stream_done` is reached and a call of this thread at its present time has reached the device.
// Returns when it is done.
Nanos ScheduleLocked(const Demand& demand, int device, Nanos stream_done);

// When a call of this thread at its present time reaches the device.
Nanos ReachesDevice();

// Work of `engine` that is ready now and is no work of a stream. Returns when it is done.
Nanos RunForHostLocked(Engine engine, Nanos time);

// When all that streams were given until now is done: those of one device, of all.
Nanos LatestDoneLocked(int device);
Nanos LatestDoneLocked();

// For the summary: how long engines worked, and how long the SMs stood still before a work that waited for its call, or
// for other engines and streams. Of several devices it is the mean.
struct Usage {
  Nanos busy[kEngines];
  Nanos idle_for_host, idle_for_others;
};
Usage UsageLocked();

}  // namespace weir::emulated

#endif
