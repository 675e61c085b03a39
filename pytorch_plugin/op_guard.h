// The observer: one RecordFunction callback that pages in what an op touches before the op runs, and releases
// it when the op has ended (R1, R4, R6, R12).
//
// Registered once, at load, and left disabled until a cap is set: then it costs nothing, and no op is seen.
// The callback runs on whatever thread runs the op, with or without the GIL. It never throws (torch would
// swallow it): what could not be brought back is thrown later, see ArmPendingOom.
#ifndef WEIR_PYTORCH_PLUGIN_OP_GUARD_H_
#define WEIR_PYTORCH_PLUGIN_OP_GUARD_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {

// Registers the callback, disabled. Once per process, before any op that uses CUDA.
void RegisterObserver();
// Switches it. Any time, any thread.
void EnableObserver();
void DisableObserver();
// False: no cap, or Weir has stood down.
bool Observing();

// An op that starts on this thread now is in no other one, seen or not: what it is given is evidence (R1, R6).
bool IsOutermost(const ThreadState& thread);

// The calling thread allocates outside every observed op: if its events are off, or our callback is gone, it
// is blind and nothing may be evicted until its events return (R4).
void NoteUnobservedAllocation();

// For list ops, which open themselves where the callback leaves them alone. `key` tells the opening again at
// the end; `name` lives at least as long as the op.
void OpenOp(const void* key, const char* name);
void CloseOp(const void* key);

// Throws the calling thread's pending OutOfMemoryError, if it has one.
void ThrowIfOomPending();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_OP_GUARD_H_
