// From an op's arguments to the blocks it touches: tensors, lists, optional lists, sparse COO and compressed
// tensors, nested tensors and storages, to any depth (R4).
//
// No reference count is kept and no op is called. Any thread; only the thread's own buffers are used.
#ifndef WEIR_PYTORCH_PLUGIN_TOUCHES_H_
#define WEIR_PYTORCH_PLUGIN_TOUCHES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "pytorch_plugin/thread_state.h"

namespace weir::plugin {

// Appends the blocks of `value` to thread.touches, thread.devices and thread.writes. False: a tensor is a Python subclass
// with
// __torch_dispatch__, whose inner tensors get events of their own.
bool CollectTouches(ThreadState& thread, const c10::IValue& value, Write write, bool evidence);
bool CollectTouches(ThreadState& thread, const at::Tensor& tensor, Write write, bool evidence);

// Forgets what was collected; the buffers stay.
void ClearTouches(ThreadState& thread);

// Touches everything collected, on each device's current stream. False: `error` has the text, and the touches
// of earlier devices are pinned until the op ends.
bool TouchCollected(ThreadState& thread, WeirError* error);
// The same if everything is resident; else nothing is fetched and false is returned.
bool TouchCollectedIfResident(ThreadState& thread);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TOUCHES_H_
