// What a trace (WEIR_TRACE) gets from torch: every op with its tensors and results, and the phases of a step. A second
// RecordFunction callback beside the observer's (op_guard.h), registered only when a trace is asked for: without one
// there is nothing on the path of an op.
//
// Runs on whatever thread runs the op, takes no reference to a tensor and asks for no address by an accessor that could have
// an effect. Never throws of its own.
#ifndef WEIR_PYTORCH_PLUGIN_OP_TRACE_H_
#define WEIR_PYTORCH_PLUGIN_OP_TRACE_H_

namespace weir::plugin {

// Registers the callback, disabled, if a trace is asked for. Once per process, at load, after the observer's.
void RegisterOpTrace();
// From now on ops are recorded, if a trace is asked for. Once CUDA is up.
void EnableOpTrace();

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_OP_TRACE_H_
