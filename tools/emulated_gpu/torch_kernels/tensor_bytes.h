// Which bytes a tensor's elements lie in, as the emulator's order checks want them: rows with a pitch. Takes no data pointer
// that a flag or hook on the storage could notice.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_TENSOR_BYTES_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_TENSOR_BYTES_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {

using Accesses = std::vector<WeirEmulatedAccess>;

// Appends the bytes of `tensor`; of a sparse tensor, those of its parts. Tensors without CUDA memory add nothing. A view
// too ragged for some dozens of row sets is in flight as a whole, and not compared.
void AddBytes(const at::Tensor& tensor, bool written, Accesses& accesses);
// A tensor or a list of them; other values add nothing.
void AddBytes(const c10::IValue& value, bool written, Accesses& accesses);

// The schema does not say that batch norm writes its running statistics (correctness R2), the kernels do.
bool IsWritten(const c10::Argument& argument);

}  // namespace weir::emulated

#endif
