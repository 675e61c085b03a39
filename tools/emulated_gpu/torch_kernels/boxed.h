// The one function that runs an aten CUDA op on its CPU kernel.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_BOXED_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_BOXED_H_

#include <ATen/core/dispatch/Dispatcher.h>

namespace weir::emulated {

// Registered at the CUDA, SparseCUDA and SparseCsrCUDA keys: the same op at the CPU key of that kind.
void RunOnCpu(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// aten::copy_ at the CUDA key: bytes that only travel take torch's own route (streams, pinned memory,
// cudaMemcpy), all else is RunOnCpu. Call KeepOriginalCopy before copy_ is overridden.
void CopyOnCpu(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);
void KeepOriginalCopy();

// An op with a CUDA kernel only, and no version here: an error by name.
void RefuseByName(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// An op that is composite on the CPU and has a kernel of its own on CUDA: the composite version, on the CUDA
// tensors.
void RunComposite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace weir::emulated

#endif
