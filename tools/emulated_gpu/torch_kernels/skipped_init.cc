#include "tools/emulated_gpu/torch_kernels/skipped_init.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <utility>

#include "tools/emulated_gpu/torch_kernels/host.h"

namespace weir::emulated {
namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;

enum class Kind {
  kFills,    // with random numbers
  kFollows,  // works on what is there, in place
  kZeroes,
  kCopies,
};

struct Op {
  const char* name;
  Kind kind;
};
constexpr Op kOps[] = {
    {"aten::normal_", Kind::kFills},       {"aten::uniform_", Kind::kFills},
    {"aten::mul_.Tensor", Kind::kFollows}, {"aten::div_.Tensor", Kind::kFollows},
    {"aten::add_.Tensor", Kind::kFollows}, {"aten::sub_.Tensor", Kind::kFollows},
    {"aten::erfinv_", Kind::kFollows},     {"aten::clamp_", Kind::kFollows},
    {"aten::clamp_min_", Kind::kFollows},  {"aten::clamp_max_", Kind::kFollows},
    {"aten::zero_", Kind::kZeroes},        {"aten::fill_.Scalar", Kind::kZeroes},
    {"aten::copy_", Kind::kCopies},
};

struct Bytes {
  uintptr_t begin = 0;
  size_t size = 0;  // 0: not to be skipped
};

// The bytes of a tensor of floats that has them alone, in memory of torch's CPU allocator.
Bytes OwnBytes(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != c10::kStrided || !tensor.has_storage() ||
      tensor.key_set().has(DispatchKey::Python) || !at::isFloatingType(tensor.scalar_type()) ||
      !tensor.is_non_overlapping_and_dense()) {
    return {};
  }
  const c10::DataPtr& pointer =
      tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  if (pointer.get_deleter() != c10::GetCPUAllocator()->raw_deleter()) return {};
  const size_t item = tensor.itemsize();
  return {reinterpret_cast<uintptr_t>(pointer.get()) + static_cast<size_t>(tensor.storage_offset()) * item,
          static_cast<size_t>(tensor.numel()) * item};
}

bool IsSkipped(const Bytes& bytes) {
  return bytes.size > 0 && Host().is_skipped(bytes.begin, bytes.size) != 0;
}

// Zero is a number that it may draw, so that what checks its range finds nothing wrong.
bool DrawsAroundZero(const Stack& stack, size_t first, const std::string& name) {
  const double a = stack[first + 1].toScalar().toDouble(), b = stack[first + 2].toScalar().toDouble();
  return name == "aten::normal_" ? a == 0 : a <= 0 && b >= 0;  // mean, standard deviation; from, to
}

class SkippingKernel : public c10::OperatorKernel {
 public:
  SkippingKernel(const Op& op, c10::SafeKernelFunction original)
      : kind_(op.kind), name_(op.name), original_(std::move(original)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const size_t first = stack->size() - op.schema().arguments().size();
    if (Skips(*stack, first)) {
      stack->erase(stack->begin() + static_cast<ptrdiff_t>(first) + 1, stack->end());  // `self` is the result
    } else {
      original_.callBoxed(op, keys, stack);
    }
  }

 private:
  bool Skips(const Stack& stack, size_t first) const {
    const at::Tensor& self = stack[first].toTensor();
    if (!self.defined() || (kind_ != Kind::kCopies && self.nbytes() < kFewestSkippedBytes)) return false;
    switch (kind_) {
      case Kind::kFills:
        return DrawsAroundZero(stack, first, name_) && Skip(OwnBytes(self));
      case Kind::kFollows:
        return IsSkipped(OwnBytes(self));
      case Kind::kZeroes:
        return Zero(stack, first, OwnBytes(self));
      case Kind::kCopies: {
        const at::Tensor& from = stack[first + 1].toTensor();
        return from.defined() && from.nbytes() >= kFewestSkippedBytes && from.sizes() == self.sizes() &&
               IsSkipped(OwnBytes(from)) && Skip(OwnBytes(self));
      }
    }
    return false;
  }

  bool Skip(const Bytes& bytes) const {
    if (bytes.size == 0) return false;
    Host().skip(name_.c_str(), bytes.begin, bytes.size);
    return true;
  }

  bool Zero(const Stack& stack, size_t first, const Bytes& bytes) const {
    const bool zero = stack.size() == first + 1 || stack[first + 1].toScalar().toDouble() == 0;
    if (!zero || bytes.size == 0) return false;
    Host().zero(bytes.begin, bytes.size);
    return true;
  }

  const Kind kind_;
  const std::string name_;
  c10::SafeKernelFunction original_;
};

}  // namespace

void SkipInitialisation() {
  auto& dispatcher = c10::Dispatcher::singleton();
  auto& library = *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::CPU, __FILE__,
                                      __LINE__);  // lives as long as the process
  for (const Op& skipped : kOps) {
    const std::string full = skipped.name;
    const size_t dot = full.find('.');
    const auto op =
        dispatcher.findOp({full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1)});
    if (!op.has_value() || !op->hasComputedKernelForDispatchKey(DispatchKey::CPU)) continue;
    library.impl(skipped.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<SkippingKernel>(
                                   skipped, op->getComputedKernelForDispatchKey(DispatchKey::CPU))));
  }
}

}  // namespace weir::emulated
