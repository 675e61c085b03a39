// What an operator does, for the virtual clock: bytes of device memory, and operations of those that compute much. From the
// schema and the arguments alone, so that both kinds of kernels cost the same.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_OP_COST_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_OP_COST_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "tools/emulated_gpu/device/torch_abi.h"
#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"

namespace weir::emulated {

// How often the bytes of an operator's tensors are moved.
enum class Traffic {
  kPlain,       // arguments once, those it writes twice (read and written), results once
  kOverwrites,  // as plain, but what it writes is not read before
  kPicks,  // of its first tensor only as much as its results have: results twice, the first tensor not at all
  kAddsInto,  // of its first tensor only as much as its other arguments have: those twice, the first not at all
};

class OpCost {
 public:
  OpCost() = default;
  explicit OpCost(const c10::FunctionSchema& schema);

  // Bytes moved for argument `index`, which has these accesses.
  double BytesOf(size_t index, const WeirEmulatedAccess* begin, const WeirEmulatedAccess* end) const {
    double bytes = 0;
    for (; begin != end; ++begin) bytes += static_cast<double>(begin->size * begin->rows);
    return index < moves_.size() ? moves_[index] * bytes : bytes;
  }
  // How often bytes of results are moved that are no arguments.
  double MovesOfResults() const { return traffic_ == Traffic::kPicks ? 2 : 1; }
  // Sets the operations of a call with these arguments and their type; leaves them at 0 where memory decides.
  void AddOperations(c10::ArrayRef<const c10::IValue> arguments, WeirEmulatedWork* work) const;

 private:
  using Count = double (*)(const OpCost& cost, c10::ArrayRef<const c10::IValue> arguments);
  friend struct Formulas;

  Traffic traffic_ = Traffic::kPlain;
  std::vector<double> moves_;  // how often the bytes of each argument are moved
  size_t first_ = 0;           // the tensor whose type the operations have
  Count count_ = nullptr;
  bool convolves_ = false;  // fp32 may be TF32 by cuDNN's switch, not by cuBLAS's
  int causal_ = -1;         // argument that says whether attention is causal
};

}  // namespace weir::emulated

#endif
