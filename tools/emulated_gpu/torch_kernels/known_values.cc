#include "tools/emulated_gpu/torch_kernels/known_values.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <torch/library.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/torch_kernels/boxed.h"
#include "tools/emulated_gpu/torch_kernels/host.h"
#include "tools/emulated_gpu/torch_kernels/lending.h"
#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"
#include "tools/emulated_gpu/torch_kernels/treatment.h"

namespace weir::emulated {
namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;

// Ops that never make what decides a shape: what they cost when wrapped would be for nothing. The CPU's log_sigmoid grows a
// buffer that CUDA's does not use.
constexpr const char* kLeftAlone[] = {
    "_foreach_", "_fused_", "_amp_",       "_cudnn",      "cudnn_",    "miopen",   "_scaled_",
    "_flash_",   "_thnn_",  "_efficient_", "native_",     "addmm",     "bmm",      "baddbmm",
    "conv",      "_conv",   "mm",          "_batch_norm", "slow_conv", "_native_", "log_sigmoid"};
// Ops that overwrite their first argument without reading it.
constexpr const char* kOverwrites[] = {"aten::fill_",       "aten::zero_",        "aten::copy_",
                                       "aten::random_",     "aten::uniform_",     "aten::normal_",
                                       "aten::bernoulli_",  "aten::exponential_", "aten::cauchy_",
                                       "aten::log_normal_", "aten::geometric_"};

template <typename List>
bool Contains(const List& list, const std::string& name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsLeftAlone(const std::string& name) {
  return std::any_of(std::begin(kLeftAlone), std::end(kLeftAlone),
                     [&](const char* start) { return name.rfind(start, 6) == 6; });  // after "aten::"
}

// The op that runs will be computed: what its CUDA code reads decides nothing. Ops that the code calls are computed too: it
// checks what they give.
class WillBeComputed {
 public:
  WillBeComputed() { Host().computes(WEIR_EMULATED_WILL_COMPUTE); }
  ~WillBeComputed() { Host().computes(computed ? WEIR_EMULATED_COMPUTED : WEIR_EMULATED_NOT_COMPUTED); }
  WillBeComputed(const WillBeComputed&) = delete;
  WillBeComputed& operator=(const WillBeComputed&) = delete;

  bool computed = false;  // all its results were
};

// While the CPU kernel runs and its results are taken, no op is computed. Nor while the CUDA code updates an argument: what
// an inner op had computed in it would be updated twice.
thread_local int computing = 0;

class Computing {
 public:
  Computing() { ++computing; }
  ~Computing() { --computing; }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;
};

bool IsSmall(const at::Tensor& tensor) {
  const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.itemsize();
  return bytes <= (at::isIntegralType(tensor.scalar_type(), true) ? kMostIntegerBytes : kMostOtherBytes);
}

// Whether the tensor may take part; `overwritten`: its bytes are not read. All CUDA tensors must be on one device, the first
// one's.
bool MayTakePart(const at::Tensor& tensor, bool written, bool overwritten,
                 std::optional<c10::Device>& device) {
  if (!tensor.defined()) return true;
  const bool plain = tensor.layout() == c10::kStrided && !tensor.is_quantized() && tensor.has_storage() &&
                     !tensor.key_set().has(DispatchKey::Python);
  if (!plain || !IsSmall(tensor)) return false;
  if (tensor.is_cpu()) return !written;
  if (!device.has_value()) device = tensor.device();
  if (!tensor.is_cuda() || tensor.device() != *device) return false;
  if (overwritten) return true;
  thread_local Accesses accesses;
  accesses.clear();
  AddBytes(tensor, written, accesses);
  return Host().is_known(accesses.data(), accesses.size()) != 0;
}

bool MayTakePart(const IValue& value, bool written, bool overwritten, std::optional<c10::Device>& device) {
  if (value.isTensor()) return MayTakePart(value.toTensor(), written, overwritten, device);
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (!MayTakePart(tensor, written, overwritten, device)) return false;
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value() && !MayTakePart(*tensor, written, overwritten, device)) return false;
    }
  }
  return true;
}

// A generator of the CPU for what the CUDA generator would draw next.
at::Generator Follow(const std::optional<at::Generator>& given) {
  const at::Generator& cuda = given.has_value() && given->defined()
                                  ? *given
                                  : at::globalContext().defaultGenerator(c10::Device(c10::kCUDA, -1));
  return at::detail::createCPUGenerator(cuda.current_seed() + cuda.get_offset() * 0x9E3779B97F4A7C15u);
}

class KnownValuesKernel : public c10::OperatorKernel {
 public:
  KnownValuesKernel(const c10::OperatorHandle& op, c10::SafeKernelFunction original)
      : name_(toString(op.operator_name())),
        original_(std::move(original)),
        overwrites_(Contains(kOverwrites, op.schema().name())),
        copies_(op.schema().name() == "aten::copy_"),
        shaped_by_values_(op.hasTag(at::Tag::dynamic_output_shape) ||
                          op.hasTag(at::Tag::data_dependent_output)) {
    for (const c10::Argument& argument : op.schema().arguments()) {
      draws_ = draws_ || argument.name() == "generator";
    }
    for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
      const c10::Argument& argument = op.schema().arguments()[i];
      updates_ = updates_ || (IsWritten(argument) && !IsOverwritten(argument, i));
    }
    draws_unseen_ = !draws_ && op.hasTag(at::Tag::nondeterministic_seeded);
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const size_t count = op.schema().arguments().size(), first = stack->size() - count;
    if (computing > 0 || draws_unseen_ || !IsKnown(op, *stack, first)) {
      original_.callBoxed(op, keys, stack);
      return;
    }
    WillBeComputed scope;
    Stack arguments(stack->begin() + static_cast<ptrdiff_t>(first), stack->end());
    std::optional<at::Generator> generator;
    if (draws_) generator = Follow(GivenGenerator(arguments, 0));
    {
      std::optional<Computing> no_inner;
      if (updates_ || WritesWhatItReads(op, *stack, first)) no_inner.emplace();
      original_.callBoxed(op, keys, stack);
    }
    const size_t results = op.schema().returns().size();
    const Computing now;
    try {
      scope.computed =
          Compute(op, std::move(arguments), generator, stack->data() + (stack->size() - results));
    } catch (const std::exception&) {
      // The CPU has no such kernel, or another idea of what is an error: the results stay unknown.
    }
  }

 private:
  bool IsOverwritten(const c10::Argument& argument, size_t index) const {
    return argument.is_out() || (index == 0 && overwrites_);
  }

  bool IsKnown(const c10::OperatorHandle& op, const Stack& stack, size_t first) const {
    const auto& arguments = op.schema().arguments();
    // It travels (travel.h) when its time comes; converted or not contiguous, it is several copies.
    if (copies_ && !stack[first + 1].toTensor().is_cuda()) return false;
    std::optional<c10::Device> device;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool overwritten = IsOverwritten(arguments[i], i);
      if (!MayTakePart(stack[first + i], IsWritten(arguments[i]), overwritten, device)) return false;
    }
    return true;
  }

  // Without a look at its pointer, which may be armed.
  static const c10::StorageImpl* StorageOf(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  }

  // Whether the memory of an argument that is overwritten is also read through another argument.
  static bool SharesStorage(const IValue& one, const at::Tensor& other) {
    if (one.isTensor()) {
      const at::Tensor& tensor = one.toTensor();
      return tensor.defined() && tensor.has_storage() && StorageOf(tensor) == StorageOf(other);
    }
    if (!one.isTensorList()) return false;
    const std::vector<at::Tensor> tensors = one.toTensorVector();
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor& tensor) { return SharesStorage(tensor, other); });
  }

  bool WritesWhatItReads(const c10::OperatorHandle& op, const Stack& stack, size_t first) const {
    const auto& arguments = op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& written = stack[first + i];
      if (!IsOverwritten(arguments[i], i) || !written.isTensor() || !written.toTensor().defined()) continue;
      for (size_t j = 0; j < arguments.size(); ++j) {
        if (j != i && SharesStorage(stack[first + j], written.toTensor())) return true;
      }
    }
    return false;
  }

  // `results` are those of the CUDA code. False where one stays as it is.
  bool Compute(const c10::OperatorHandle& op, Stack arguments, const std::optional<at::Generator>& generator,
               IValue* results) const {
    const auto& schema = op.schema();
    for (size_t i = 0; i < schema.returns().size(); ++i) {
      if (results[i].isTensor() && results[i].toTensor().defined() && !IsSmall(results[i].toTensor()))
        return false;
    }
    const Stack given = arguments;
    Lending lending = Lending::Announced(name_.c_str());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool draws = schema.arguments()[i].name() == "generator";
      arguments[i] =
          draws ? IValue(*generator) : LendValue(lending, arguments[i], IsWritten(schema.arguments()[i]));
    }
    Lending::Settle();
    Redispatch(op, c10::DispatchKeySet(DispatchKey::CPU), &arguments);
    lending.TakeBackArguments();
    Accesses written;
    for (size_t i = 0; i < given.size(); ++i) {
      if (IsWritten(schema.arguments()[i])) AddBytes(given[i], true, written);
    }
    bool all = true;
    for (size_t i = 0; i < arguments.size(); ++i)
      all = TakeResult(lending, arguments[i], results[i], written) && all;
    Host().computed(name_.c_str(), written.data(), written.size());
    return all;
  }

  // Puts what the CPU computed into the place of what CUDA returned.
  bool TakeResult(Lending& lending, const IValue& computed, IValue& result, Accesses& written) const {
    bool all = true;
    if (computed.isTensor() && result.isTensor()) {
      at::Tensor tensor = result.toTensor();
      all = TakeTensor(lending, computed.toTensor(), tensor, written);
      result = std::move(tensor);
    } else if (computed.isTensorList() && result.isTensorList()) {
      const std::vector<at::Tensor> from = computed.toTensorVector();
      std::vector<at::Tensor> to = result.toTensorVector();
      all = from.size() == to.size();
      for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
        all = TakeTensor(lending, from[i], to[i], written) && all;
      result = c10::List<at::Tensor>(to);
    } else {
      result = computed;
    }
    return all;
  }

  bool TakeTensor(Lending& lending, const at::Tensor& computed, at::Tensor& result, Accesses& written) const {
    if (!computed.defined() && !result.defined()) return true;
    if (!computed.defined() || !result.defined() || !result.is_cuda()) return false;
    if (computed.scalar_type() != result.scalar_type()) return false;
    if (computed.sizes() == result.sizes()) {
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      at::RecordFunctionGuard no_record_functions(false);
      lending.Lend(result, /*written=*/true).copy_(computed);
    } else if (shaped_by_values_) {
      at::RecordFunctionGuard no_record_functions(false);
      result = lending.TakeResult(computed);
    } else {
      return false;
    }
    AddBytes(result, true, written);
    return true;
  }

  const std::string name_;
  c10::SafeKernelFunction original_;
  const bool overwrites_, copies_, shaped_by_values_;
  bool draws_ = false, draws_unseen_ = false;
  bool updates_ = false;  // reads and writes an argument
};

}  // namespace

void ComputeKnownValues() {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto& library = *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::CUDA, __FILE__,
                                      __LINE__);  // lives as long as the process
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0 || IsLeftAlone(name.name)) continue;
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasSchema()) continue;
    // copy_ is one function for all devices.
    if (!op->hasKernelForDispatchKey(DispatchKey::CUDA) && name.name != "aten::copy_") continue;
    if (!op->hasComputedKernelForDispatchKey(DispatchKey::CPU)) continue;
    const std::string full = toString(name);
    if (TreatmentOf(full, DispatchKey::CUDA, /*has_cpu=*/true) != Treatment::kOnCpu) continue;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<KnownValuesKernel>(
                                   *op, op->getComputedKernelForDispatchKey(DispatchKey::CUDA))));
  }
}

}  // namespace weir::emulated
