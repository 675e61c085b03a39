// What the plugin remembers per thread: the pin-holding ops that are open, the touch buffer, a failed touch
// whose OutOfMemoryError has not been thrown yet (R12), and whether the thread is blind (R4).
//
// A thread sees only its own state, so there is no lock. The state lives on the heap, is made at the thread's
// first op and freed when the thread ends; an op that runs later still (destructors of other thread-locals)
// gets a fresh one. Includes nothing of torch.
#ifndef WEIR_PYTORCH_PLUGIN_THREAD_STATE_H_
#define WEIR_PYTORCH_PLUGIN_THREAD_STATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {

// What an op does to an argument (R2). kHooked: it asks for the address by the mutable accessor, so a materialize
// hook stops it; kMaybe: it may also write through an address that it took for reading.
enum class Write : uint8_t { kNever, kMaybe, kHooked };

// A storage that the failed touch left with a hook or a changed text; undone when the op ends.
struct ArmedStorage {
  void* storage;       // StorageImpl*, one weak reference held
  void* base;          // the block's address
  bool hooked;         // our materialize hook is in, the throwing flag is out
  std::string denied;  // text of the flag before
};

struct ThreadState {
  std::vector<const void*> open;   // pin-holding ops, outermost first: the RecordFunction or the list op
  std::vector<WeirTouch> touches;  // reused from op to op: no allocation in the steady state
  std::vector<int16_t> devices;    // of each touch
  std::vector<Write> writes;       // of each touch
  std::vector<ArmedStorage> armed;
  std::string oom;       // text of the pending OutOfMemoryError; empty: none
  size_t oom_depth = 0;  // open.size() while the op that failed is the innermost
  bool blind = false;
  uint32_t ended = 0;  // outermost ops, for the question whether watching may end

  // Whose thread it is; constant.
  uint64_t python_id = 0;  // 0: Python does not know it
  bool engine = false;     // of torch's autograd engine
};

// The calling thread's state.
ThreadState& Thread();

// `each` for the state of every thread that has one and has not ended. Only what is constant may be looked at.
void ForEachThread(const std::function<void(const ThreadState&)>& each);

// True in a child that was forked after the plugin had been loaded: CUDA is unusable there, everything stands
// down.
bool InForkedChild();
// Registers the fork handler. Once, at load.
void WatchForks();

// Number of threads that have a pending error: allocate() looks at its thread's state only when it is not
// zero.
int PendingOoms();
void CountPendingOoms(int change);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_THREAD_STATE_H_
