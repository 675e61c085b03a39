// The virtual clock for code outside the emulator that knows that it runs on it: functions that libcuda.so.1 exports. Plain C.
// Where the symbols are not found, the device is a real one. Any thread, without locks of the emulator; before the first
// use of the device all of them give 0 and do nothing.
#ifndef WEIR_EMULATED_GPU_DEVICE_CLOCK_ABI_H_
#define WEIR_EMULATED_GPU_DEVICE_CLOCK_ABI_H_

#include <stdint.h>

// Work of Weir that a host thread does; the profile has the time of one of each (weir_op_us and so on).
enum WeirEmulatedCharge {
  WEIR_CHARGE_OP,  // an op observed, its tensors not counted
  WEIR_CHARGE_MALLOC,  // one allocation; what torch's own takes is part of an operator, so this is what is above it
  WEIR_CHARGE_FREE,        // one free; the same
  WEIR_CHARGE_PAGE_IN,     // one extent chosen to leave or to come back
  WEIR_CHARGE_PLAN,        // one entry of a plan
  WEIR_CHARGE_MAPPER,      // one hand-over to a thread that maps
  WEIR_CHARGE_EVENT,       // an event of torch's observer that holds nothing
  WEIR_CHARGE_TOUCH,       // one tensor of an op: found, pinned, released
  WEIR_CHARGE_CANDIDATE,   // one extent that a choice of victims looks at
  WEIR_CHARGE_NANOSECONDS  // nothing of the profile: `count` nanoseconds
};

// `weir_emulated_now_ns`: the calling thread's virtual time in nanoseconds.
typedef int64_t (*WeirEmulatedNow)(void);
// `weir_emulated_charge`: the calling thread did `count` of `kind` (WeirEmulatedCharge). Unknown kinds do nothing.
typedef void (*WeirEmulatedChargeHost)(int kind, uint64_t count);
// `weir_emulated_wait_until`: the calling thread does nothing until `time`: what a wait for background work is.
typedef void (*WeirEmulatedWaitUntil)(int64_t time);
// `weir_emulated_switch_ns`: the calling thread goes on at `time`, which may be before its own; returns what its own was. For
// an executor that does the work of background threads in turns on one: it keeps a time for each and switches to it around
// their tasks.
typedef int64_t (*WeirEmulatedSwitch)(int64_t time);
// `weir_emulated_nvme`: the drive reads (`write` 0) or writes `bytes` after what it was given before. Returns the virtual
// time at which that is done; the calling thread goes on.
typedef int64_t (*WeirEmulatedNvme)(int write, uint64_t bytes);

// `weir_emulated_usage`: what the engines did so far. Nanoseconds of the virtual clock.
struct WeirEmulatedUsage {
  int64_t done;                                    // when all that streams were given is done
  int64_t sms, copy_in, copy_out, mapper, nvme;    // busy
  int64_t sms_idle_for_host, sms_idle_for_others;  // before a work that waited for its call; for other work
  int64_t host_blocked;                            // of all threads, whatever on
  int64_t host_weir;                               // what was charged
  int64_t steps, step;  // how many, the first not counted; the median of their times
};
typedef void (*WeirEmulatedReadUsage)(struct WeirEmulatedUsage* usage);

#endif
