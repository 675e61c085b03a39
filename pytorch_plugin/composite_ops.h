// Which aten ops are containers: they read and write no bytes themselves, they only call other ops through
// the dispatcher (each with an event of its own) and hold no raw pointer across those calls. A container
// holds no pin and makes no touch (R1), or aten::lstm would keep a whole sequence resident.
//
// The list is audited by hand against PyTorch 2.15's sources; 2.11 registers all of them in the same way. An op
// that is missing here is only held longer than needed; an op that is wrongly here may lose a temporary in the
// middle of a kernel. When in doubt, leave it out.
//
// Any thread. Pure functions.
#ifndef WEIR_PYTORCH_PLUGIN_COMPOSITE_OPS_H_
#define WEIR_PYTORCH_PLUGIN_COMPOSITE_OPS_H_

#include <string_view>

namespace weir::plugin {

// `name` is the qualified name without overload ("aten::linear").
bool IsContainerOp(std::string_view name);

// Ops that use no byte of their arguments, only their shape: nothing is brought back for them. Their
// arguments count as seen (R1): a gradient that autograd hands to .grad is the argument of nothing but
// aten::detach.
bool IsViewOp(std::string_view name);

// True if what `name` returns counts as seen (R1): an aten op that computes. What factories and the cuDNN helpers make
// does not: caches, workspaces and dropout states, whose users hold raw pointers, are made that way.
bool ResultsCountAsSeen(std::string_view name);

// Collectives: their work goes on after the op has ended, on a stream that torch never tells us about.
bool IsCollectiveOp(std::string_view name);

// aten::_foreach_*, aten::_fused_* and aten::_amp_foreach_*. Which of them take lists is for the schema to
// say.
bool HasListOpName(std::string_view name);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_COMPOSITE_OPS_H_
