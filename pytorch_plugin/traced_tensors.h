// The tensors on the card that a value holds, as a trace wants them: tensors, lists, optional lists, tuples, and the parts
// of sparse ones. No reference count is kept, nothing is asked of a tensor that could change it. Any thread.
#ifndef WEIR_PYTORCH_PLUGIN_TRACED_TENSORS_H_
#define WEIR_PYTORCH_PLUGIN_TRACED_TENSORS_H_

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "pytorch_plugin/core_abi.h"

namespace weir::plugin {

// Appends those of `value` with `flags` and what autograd says of each. True: there is one in CPU memory too, that is no
// number in disguise.
bool AddTensors(const c10::IValue& value, uint32_t flags, std::vector<WeirTraceTensor>* tensors);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TRACED_TENSORS_H_
