// The observer is on only while something may have to leave VRAM (R6). This switches it: off when the job repeats itself and
// fits, on when the core has seen something new, or needs room. After each on, safe_points.h says when what is seen counts.
#ifndef WEIR_PYTORCH_PLUGIN_OBSERVER_SWITCH_H_
#define WEIR_PYTORCH_PLUGIN_OBSERVER_SWITCH_H_

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {

// After the calling thread's outermost op has ended: now and then asks the core whether watching may end, and ends it.
void EndWatchIfQuiet();

// Around each allocation of torch while nobody watches: the thread becomes known, before; watching begins again if
// what was allocated is new, after.
void NoteUnwatchedAllocation();
void BeginWatchIfWanted();

// WeirHost::eviction_veto: something is to leave, so watching begins if nobody watches; why nothing may leave yet, or nullptr.
const char* VetoOfEviction();

}  // namespace weir::plugin

extern "C" {
// For tests and tools: on = 1 begins watching, 0 ends it if everything is in VRAM, quiet or not. Returns 1 if it is
// on afterwards.
WEIR_API int weir_plugin_switch(int on);
}

#endif  // WEIR_PYTORCH_PLUGIN_OBSERVER_SWITCH_H_
