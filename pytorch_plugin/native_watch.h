// torch's own allocator, in place and watched: what the trace of `weir dryrun` without a cap tells of memory.
//
// The allocator calls a tracker for each block, under its lock; sizes are those that were asked for. Its own counts, which
// max_memory_allocated() and max_memory_reserved() give, are read at the same time, so that what a job resets is not lost.
#ifndef WEIR_PYTORCH_PLUGIN_NATIVE_WATCH_H_
#define WEIR_PYTORCH_PLUGIN_NATIVE_WATCH_H_

namespace weir::plugin {

// Whether that is what the options ask for. Known after weir_start.
bool WatchesNative();

// Begins to watch, ops included. Once per process, before the first block, while the number of devices is asked for the first
// time. False: Weir cannot work here, and why was logged.
bool WatchNative();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_NATIVE_WATCH_H_
