// The one function that runs an aten CUDA op on its CPU kernel.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_BOXED_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_BOXED_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
// Generator.h needs the whole Tensor.
#include <ATen/core/Generator.h>

#include <optional>

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

// ---- parts of RunOnCpu
class Lending;
// The value with its CUDA tensors lent, a CUDA device turned into the CPU.
c10::IValue LendValue(Lending& lending, const c10::IValue& value, bool written);
// Runs the kernel at `key` with nothing of torch's above it: no autograd, no autocast, no record functions (its
// inner ops are CPU ops that a CUDA op would not show).
void Redispatch(const c10::OperatorHandle& op, c10::DispatchKeySet key, torch::jit::Stack* stack);
// The first generator among the arguments, which begin at `first`.
std::optional<at::Generator> GivenGenerator(const torch::jit::Stack& stack, size_t first);

}  // namespace weir::emulated

#endif
