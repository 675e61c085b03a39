// Boxed overrides at the CUDA key of the ops that work on lists of tensors (_foreach_*, _fused_* optimizers,
// _amp_foreach_*): they bring back and run a few tensors at a time, so that an optimizer step needs only
// those in VRAM (R14). The result is that of one call on the whole list, to the bit; see list_route.h.
//
// The kernels that were there before are taken first and called through. Registered once, at load (R7); only
// entries of the CUDA key change.
#ifndef WEIR_PYTORCH_PLUGIN_LIST_OPS_H_
#define WEIR_PYTORCH_PLUGIN_LIST_OPS_H_

#include <ATen/core/operator_name.h>

namespace weir::plugin {

struct ListOp;

// Once per process, before RegisterObserver's callback is enabled. Returns how many ops were overridden.
int RegisterListOps();

// The override of `op`, nullptr if there is none. Any thread, after RegisterListOps.
const ListOp* FindListOp(const c10::OperatorName& op);

// True while a call of this op with CUDA tensors ends in our kernel: nobody has overridden it after us.
bool ReachesOurKernel(const ListOp& op);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_LIST_OPS_H_
