// When watching begins, ops that began unseen are still on their way, with addresses in hand. This says when they have all
// ended (R6): each thread that Weir knows (it ran a seen op, or allocated) has been at a point where it is in no op.
//
//  - A Python thread: between two instructions of the main thread (torch calls no op there), at another instruction or frame
//    than at an earlier look, or in a wait of the standard library.
//  - A thread of torch's autograd engine: at a time when no Python thread waits for a backward pass.
//  - Any other thread: never, as long as it lives.
// So watching may not end while there is one of the last kind, nor in a process whose Python cannot be asked.
//
// A thread that has never allocated, and ran no op while ops were seen, is not known.
#ifndef WEIR_PYTORCH_PLUGIN_SAFE_POINTS_H_
#define WEIR_PYTORCH_PLUGIN_SAFE_POINTS_H_

namespace weir::plugin {

// False: a thread of the last kind is there, or Python cannot be asked.
bool CanFindSafePoints();

// Watching is about to begin: nothing is passed, and no look counts, for an op could still begin unseen after it.
void ForgetSafePoints();
// The observer is on. Asks Python's main thread for a look. Locks nothing of torch's or Python's.
void CountLooks();

// All passed since: what is seen now is evidence, and may leave. One relaxed load.
bool SafePointsPassed();

// An event was seen before all were passed: looks at the first, the second, the fourth ..., for a look costs as much as some
// ops do.
void LookNowAndThen();

// Looks, if not all are passed. Takes the GIL. Returns what SafePointsPassed() says then.
bool LookForSafePoints();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_SAFE_POINTS_H_
