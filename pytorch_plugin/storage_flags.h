// The throwing flag, the materialize hook and weak counts of c10::StorageImpl (R4, R8, R12).
//
// A storage whose block was evicted carries torch's throwing flag with our text, so that an access that the
// observer did not see is a Python exception. Callable with a Weir lock held: only fields of the storage and
// its weak count change, never a strong count, and no Python object is touched.
#ifndef WEIR_PYTORCH_PLUGIN_STORAGE_FLAGS_H_
#define WEIR_PYTORCH_PLUGIN_STORAGE_FLAGS_H_

#include <c10/core/StorageImpl.h>

#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {

// The four storage functions of WeirHost.
void StorageRetain(void* storage);
void StorageRelease(void* storage);
void StorageDeny(void* storage, const void* base, const char* text);
void StorageAllow(void* storage);

// True if the storage throws because of us (its text is ours).
bool DeniedByUs(c10::StorageImpl* storage);
// True if the core may set and clear flags on it: its pointer is the block's base, its deleter is Weir's, and
// no one else (copy-on-write, functionalisation) has armed it.
bool IsManaged(c10::StorageImpl* storage);
// `deleter` frees Weir's blocks: IsManaged() accepts it from now on. At load, and once for the pluggable
// route.
void AcceptDeleter(c10::DeleterFnPtr deleter);

// R12: what was collected in thread.touches could not be made resident. Pins the blocks that are resident
// anyway; a storage that is written for certain gets a hook that throws OutOfMemoryError in place of its flag, any
// other keeps the flag with `text`. The thread's next allocation throws. All until DisarmPendingOom.
void ArmPendingOom(ThreadState& thread, const char* text);
// The op that failed has ended: flags and hooks are as they were.
void DisarmPendingOom(ThreadState& thread);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_STORAGE_FLAGS_H_
