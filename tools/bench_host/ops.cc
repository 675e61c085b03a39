// What the observer, the allocator and the pager of Weir take, in multiples of an allocation and a free of torch's own allocator
// and in multiples of an op of torch's that nobody observes: that is code of the same kind, and the same for everybody who has
// this torch. A library that costs.py opens, on the emulated GPU without checks, with a cap that is never reached, before
// anything used CUDA. Kernels do nothing. Prints one JSON line.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erfinv_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/record_function.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <vector>

#include "tools/bench_host/moves.h"
#include "tools/bench_host/side_by_side.h"
#include "tools/bench_host/step_sizes.h"
#include "tools/emulated_gpu/device/clock_abi.h"

namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using weir::bench::Timed;
using weir::bench::Work;

constexpr int kOps = 64;

at::Tensor& OfOne(at::Tensor& self) { return self; }
at::Tensor& OfThree(at::Tensor& self, const at::Tensor&, const at::Tensor&) { return self; }

// As many blocks as there are ops, given by an allocator and given back, last in first out.
class Blocks {
 public:
  Blocks(CUDAAllocator* allocator, const std::vector<size_t>& sizes) : allocator_(allocator), sizes_(sizes) {}

  struct Times {
    double malloc, free;
  };
  Times Run() {
    const double malloc = Timed([&] {
      for (int i = 0; i < kOps; ++i)
        blocks_.push_back(allocator_->raw_alloc(sizes_[next_++ % sizes_.size()]));
    });
    const double free = Timed([&] {
      for (; !blocks_.empty(); blocks_.pop_back()) allocator_->raw_delete(blocks_.back());
    });
    return {malloc, free};
  }

 private:
  CUDAAllocator* const allocator_;
  const std::vector<size_t>& sizes_;
  size_t next_ = 0;
  std::vector<void*> blocks_;
};

double Times(const std::function<void()>& run) {
  return Timed([&] {
    for (int i = 0; i < kOps; ++i) run();
  });
}
double Unobserved(const std::function<void()>& run) {
  at::RecordFunctionGuard off(/*is_enabled=*/false);
  return Times(run);
}
// What `run` takes more when it is observed.
double Observed(const std::function<void()>& run) { return Times(run) - Unobserved(run); }

// An event such as that of a backward node, whose tensors Weir leaves to the ops that it calls.
void BackwardNode(const std::vector<c10::IValue>& inputs) {
  at::RecordFunction event(at::RecordScope::BACKWARD_FUNCTION);
  if (event.isActive()) event.before("Node", c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
}

// What it takes to tell the emulated GPU of a piece of work, which Weir would not do elsewhere.
double Telling(WeirEmulatedChargeHost charge) {
  return Times([&] { charge(WEIR_CHARGE_OP, 0); });
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("erfinv_", TORCH_FN(OfOne));
  library.impl("lerp_.Tensor", TORCH_FN(OfThree));
}

// 0, or 1 where Weir or the emulated GPU is not.
extern "C" __attribute__((visibility("default"))) int bench_ops(int rounds) {
  // Weir replaces it when CUDA starts.
  CUDAAllocator* const torchs = c10::cuda::CUDACachingAllocator::allocator.load();
  const auto new_tensor = [] { return at::empty({4 << 20}, at::TensorOptions(at::kCUDA).dtype(at::kFloat)); };
  at::Tensor a = new_tensor(), b = new_tensor(), c = new_tensor();
  CUDAAllocator* const weirs = c10::cuda::CUDACachingAllocator::allocator.load();
  const auto charge = reinterpret_cast<WeirEmulatedChargeHost>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "weir_emulated_charge"));
  if (weirs == torchs || charge == nullptr) {
    std::fprintf(stderr, "Weir or the emulated GPU is not there\n");
    return 1;
  }
  torchs->init(1);
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const std::vector<size_t> sizes = weir::bench::StepSizes();
  Blocks of_torch(torchs, sizes), of_weir(weirs, sizes);
  const auto pair = [&] {
    const Blocks::Times times = of_torch.Run();
    return times.malloc + times.free;
  };
  const std::vector<c10::IValue> inputs{a, b};
  weir::bench::PrintCosts(
      {{"torch_pair", kOps, pair},
       {"torch_op", kOps, [&] { return Unobserved([&] { at::_ops::lerp__Tensor::call(a, b, c); }); }}},
      {{"torch_malloc", kOps, [&] { return of_torch.Run().malloc; }},
       {"torch_free", kOps, [&] { return of_torch.Run().free; }},
       {"weir_malloc", kOps, [&] { return of_weir.Run().malloc; }},
       {"weir_free", kOps, [&] { return of_weir.Run().free; }},
       {"op_of_1", kOps, [&] { return Observed([&] { at::_ops::erfinv_::call(a); }); }},
       {"op_of_3", kOps, [&] { return Observed([&] { at::_ops::lerp__Tensor::call(a, b, c); }); }},
       {"event", kOps, [&] { return Observed([&] { BackwardNode(inputs); }); }},
       {"telling", kOps, [&] { return Telling(charge); }},
       weir::bench::PairsOfMoves("moves_of_64", 64),
       weir::bench::PairsOfMoves("moves_of_1024", 1024)},
      rounds);
  return 0;
}
