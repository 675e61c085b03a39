#include "tools/emulated_gpu/device/virtual_clock.h"

#include <atomic>

namespace weir::emulated {
namespace {

std::atomic<Nanos> latest{0};
std::atomic<Nanos> waited[kWaits], worked[kBusy];

constexpr Nanos kNotStarted = -1;
thread_local Nanos now = kNotStarted;

// Not one atomic step, which every call would pay for: of threads that run at once the later time may be lost, until the
// next call of its thread.
void MoveTo(Nanos time) {
  now = time;
  if (latest.load(std::memory_order_relaxed) < time) latest.store(time, std::memory_order_relaxed);
}

}  // namespace

Nanos HostNow() {
  if (now == kNotStarted) now = latest.load(std::memory_order_relaxed);
  return now;
}

void ChargeHost(Nanos time, Busy what) {
  std::atomic<Nanos>& sum = worked[static_cast<size_t>(what)];  // as in MoveTo, not one atomic step
  sum.store(sum.load(std::memory_order_relaxed) + time, std::memory_order_relaxed);
  MoveTo(HostNow() + time);
}

const char* NameOf(Busy what) {
  constexpr const char* kNames[kBusy] = {"operators", "calls", "mapping", "allocating and pinning", "Weir"};
  return kNames[static_cast<size_t>(what)];
}

Nanos Worked(Busy what) { return worked[static_cast<size_t>(what)].load(std::memory_order_relaxed); }

Nanos SwitchHostTime(Nanos time) {
  const Nanos before = HostNow();
  MoveTo(time);
  return before;
}

void HostReaches(Nanos time) {
  if (time > HostNow()) MoveTo(time);
}

const char* NameOf(Wait wait) {
  constexpr const char* kNames[kWaits] = {"stream", "event",  "device",       "copy",      "query",
                                          "free",   "mapper", "launch queue", "background"};
  return kNames[static_cast<size_t>(wait)];
}

void HostWaits(Nanos time, Wait wait) {
  const Nanos before = HostNow();
  if (time <= before) return;
  waited[static_cast<size_t>(wait)].fetch_add(time - before, std::memory_order_relaxed);
  MoveTo(time);
}

Nanos Waited(Wait wait) { return waited[static_cast<size_t>(wait)].load(std::memory_order_relaxed); }

Nanos LatestHost() { return latest.load(std::memory_order_relaxed); }

}  // namespace weir::emulated
