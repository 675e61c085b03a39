// The virtual time of host threads, in nanoseconds from the start of the process. It moves by what the profile says that
// calls, operators and waits take, never by the machine's clock: a program whose threads take turns gets the same times in
// every run, on every machine. Any thread; each thread reads and moves its own time.
//
// A thread that calls here for the first time starts at the latest time of any. Turns are handed over where they can be
// seen: a call on a stream or event moves the thread to the time of the call before it on that stream or event.
#ifndef WEIR_EMULATED_GPU_DEVICE_VIRTUAL_CLOCK_H_
#define WEIR_EMULATED_GPU_DEVICE_VIRTUAL_CLOCK_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

using Nanos = int64_t;

// Of `amount` microseconds; of `amount` units at `rate` times 1e9 units a second. Rounded to the nearest.
inline Nanos Micros(double amount) { return static_cast<Nanos>(amount * 1e3 + 0.5); }
inline Nanos TimeFor(double amount, double rate) { return static_cast<Nanos>(amount / rate + 0.5); }

Nanos HostNow();

// What a thread works on. kCalls: launches, copies, events and the like; kMemory: allocating, freeing and pinning.
enum class Busy { kOperators, kCalls, kMapping, kMemory, kWeir };
inline constexpr size_t kBusy = 5;
const char* NameOf(Busy what);
// This thread works for so long.
void ChargeHost(Nanos time, Busy what);
// What threads worked in all; of threads that run at once some may be lost.
Nanos Worked(Busy what);

// What another thread did at `time` comes before what this one does from now on.
void HostReaches(Nanos time);

// This thread goes on at `time`, which may be before its own. Returns what that was.
Nanos SwitchHostTime(Nanos time);

// What a thread waits for. kQueue: a stream that has as many launches waiting as it takes. kTime: work in the background.
enum class Wait { kStream, kEvent, kDevice, kCopy, kQuery, kFree, kMapper, kQueue, kTime };
inline constexpr size_t kWaits = 9;
const char* NameOf(Wait wait);
// This thread does nothing until `time`, if that is not past.
void HostWaits(Nanos time, Wait wait);
// What threads waited in all.
Nanos Waited(Wait wait);

// The latest time of any thread.
Nanos LatestHost();

}  // namespace weir::emulated

#endif
