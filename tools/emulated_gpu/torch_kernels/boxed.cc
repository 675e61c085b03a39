#include "tools/emulated_gpu/torch_kernels/boxed.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

#include "tools/emulated_gpu/torch_kernels/devices.h"
#include "tools/emulated_gpu/torch_kernels/host.h"
#include "tools/emulated_gpu/torch_kernels/lending.h"
#include "tools/emulated_gpu/torch_kernels/op_cost.h"
#include "tools/emulated_gpu/torch_kernels/random_state.h"
#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"

namespace weir::emulated {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using torch::jit::Stack;

std::optional<c10::SafeKernelFunction>& OriginalCopy() {
  static auto* kernel = new std::optional<c10::SafeKernelFunction>;
  return *kernel;
}

DispatchKeySet CpuKeyFor(DispatchKeySet keys) {
  switch (keys.highestPriorityTypeId()) {
    case DispatchKey::SparseCUDA:
      return DispatchKeySet(DispatchKey::SparseCPU);
    case DispatchKey::SparseCsrCUDA:
      return DispatchKeySet(DispatchKey::SparseCsrCPU);
    default:
      return DispatchKeySet(DispatchKey::CPU);
  }
}

void NoteResults(Lending& lending, const IValue& value) {
  if (value.isTensor()) lending.NoteResult(value.toTensor());
  if (!value.isTensorList()) return;
  for (const at::Tensor& tensor : value.toTensorVector()) lending.NoteResult(tensor);
}

IValue TakeValue(Lending& lending, const IValue& value) {
  if (value.isTensor()) return lending.TakeResult(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> taken;
    for (const at::Tensor& tensor : value.toTensorVector()) taken.push_back(lending.TakeResult(tensor));
    return taken;
  }
  return value;
}

bool Draws(const c10::OperatorHandle& op) {
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return true;
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (argument.name() == "generator") return true;
  }
  return false;
}

// A CUDA op allocates its results before it takes a pointer to its arguments, so that is where an allocator's
// out-of-memory error comes from (correctness R12). The CPU kernels allocate on the CPU; this stands in for
// it.
void AllocateFirst(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr) continue;
    at::RecordFunctionGuard no_record_functions(false);
    at::empty({1}, at::TensorOptions(c10::kCUDA).dtype(c10::kByte));
    return;
  }
}

// Schemas live as long as the process.
const OpCost& CostOf(const c10::FunctionSchema& schema) {
  thread_local std::unordered_map<const c10::FunctionSchema*, OpCost> known;
  const auto found = known.find(&schema);
  return found != known.end() ? found->second : known.emplace(&schema, OpCost(schema)).first->second;
}

WeirEmulatedWork WorkOf(const OpCost& cost, const c10::FunctionSchema& schema,
                        c10::ArrayRef<const IValue> arguments) {
  WeirEmulatedWork work{};
  thread_local Accesses accesses;
  for (size_t i = 0; i < arguments.size(); ++i) {
    accesses.clear();
    AddBytes(arguments[i], IsWritten(schema.arguments()[i]), accesses);
    work.bytes += cost.BytesOf(i, accesses.data(), accesses.data() + accesses.size());
  }
  cost.AddOperations(arguments, &work);
  return work;
}

void RunLent(const c10::OperatorHandle& op, DispatchKeySet key, Stack* stack, const Drawing* drawing) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  AllocateFirst(schema);
  const OpCost& cost = CostOf(schema);
  const WeirEmulatedWork work =
      WorkOf(cost, schema, c10::ArrayRef<const IValue>(stack->data() + first, count));
  Lending lending(schema.name().c_str(), cost.MovesOfResults());
  // Written arguments first: their hooks must act before the same storage is lent for reading.
  std::vector<IValue> lent(count);
  for (const bool written : {true, false}) {
    for (size_t i = 0; i < count; ++i) {
      if (IsWritten(schema.arguments()[i]) == written)
        lent[i] = LendValue(lending, (*stack)[first + i], written);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const bool generator = schema.arguments()[i].name() == "generator" && drawing != nullptr;
    if (generator) lent[i] = drawing->host().has_value() ? IValue(*drawing->host()) : IValue();
    (*stack)[first + i] = std::move(lent[i]);
  }
  lending.RunsNow(&work);
  Redispatch(op, key, stack);
  lending.TakeBackArguments();
  const size_t results = schema.returns().size(), from = stack->size() - results;
  for (size_t i = from; i < stack->size(); ++i) NoteResults(lending, (*stack)[i]);
  for (size_t i = from; i < stack->size(); ++i) (*stack)[i] = TakeValue(lending, (*stack)[i]);
}

bool DenseInTheSameOrder(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.strides() == other.strides() &&
         one.is_non_overlapping_and_dense();
}

// Bytes that only travel: what torch's own copy does without a kernel.
bool OnlyTravels(const at::Tensor& to, const at::Tensor& from) {
  return to.layout() == c10::kStrided && from.layout() == c10::kStrided &&
         to.scalar_type() == from.scalar_type() && to.is_conj() == from.is_conj() &&
         to.is_neg() == from.is_neg() && to.numel() > 0 && DenseInTheSameOrder(to, from);
}

// As torch does it where a kernel does not reach both: converted where it is, moved, and put in its place there.
void CopyBetweenDevices(const at::Tensor& to, const at::Tensor& from) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor converted =
      from.to(to.scalar_type()).resolve_conj().resolve_neg().expand(to.sizes()).contiguous();
  const at::Tensor moved = at::empty(to.sizes(), to.options());
  moved.copy_(converted);
  to.copy_(moved);
}

}  // namespace

IValue LendValue(Lending& lending, const IValue& value, bool written) {
  if (value.isTensor()) return lending.Lend(value.toTensor(), written);
  if (value.isTensorList()) {
    c10::List<at::Tensor> lent;
    for (const at::Tensor& tensor : value.toTensorVector()) lent.push_back(lending.Lend(tensor, written));
    return lent;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> lent;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      lent.push_back(tensor.has_value() ? std::optional<at::Tensor>(lending.Lend(*tensor, written))
                                        : std::nullopt);
    }
    return lent;
  }
  if (value.isDevice() && value.toDevice().is_cuda()) return IValue(c10::Device(c10::kCPU));
  return value;
}

std::optional<at::Generator> GivenGenerator(const Stack& stack, size_t first) {
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack[i].isGenerator()) return stack[i].toGenerator();
  }
  return std::nullopt;
}

void Redispatch(const c10::OperatorHandle& op, DispatchKeySet key, Stack* stack) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  at::RecordFunctionGuard no_record_functions(false);
  op.redispatchBoxed(key, stack);
}

void RunOnCpu(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const OpName name(op.operator_name().name.c_str());
  const size_t arguments = op.schema().arguments().size();
  const OnDeviceOf device(c10::ArrayRef<const IValue>(stack->data() + stack->size() - arguments, arguments));
  Host().count_launch();
  if (!Draws(op)) {
    RunLent(op, CpuKeyFor(keys), stack, nullptr);
    return;
  }
  const Drawing drawing(GivenGenerator(*stack, stack->size() - arguments));
  RunLent(op, CpuKeyFor(keys), stack, &drawing);
}

void KeepOriginalCopy() {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  OriginalCopy() = op.getComputedKernelForDispatchKey(DispatchKey::CUDA);
}

void CopyOnCpu(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const at::Tensor& to = (*stack)[stack->size() - 3].toTensor();
  const at::Tensor& from = (*stack)[stack->size() - 2].toTensor();
  if (to.defined() && from.defined() && to.is_cuda() && from.is_cuda() && to.device() != from.device() &&
      !OnlyTravels(to, from)) {
    CopyBetweenDevices(to, from);
    stack->erase(stack->end() - 2, stack->end());  // `to` is the result
    return;
  }
  if (to.defined() && from.defined() && OnlyTravels(to, from)) {
    const OpName name("aten::copy_");
    OriginalCopy()->callBoxed(op, keys, stack);
    return;
  }
  RunOnCpu(op, keys, stack);
}

void RefuseByName(const c10::OperatorHandle& op, DispatchKeySet, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "emulated GPU: ", toString(op.operator_name()), " has no CPU version");
}

void RunComposite(const c10::OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  op.getComputedKernelForDispatchKey(DispatchKey::AutogradCPU).callBoxed(op, keys, stack);
}

}  // namespace weir::emulated
