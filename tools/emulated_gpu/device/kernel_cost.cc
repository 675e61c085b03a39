#include "tools/emulated_gpu/device/kernel_cost.h"

#include <algorithm>

#include "tools/emulated_gpu/device/profile.h"

namespace weir::emulated {
namespace {

const Costs& TheCosts() { return Settings().profile->costs; }

double TeraOperations(int type) {
  const Costs& costs = TheCosts();
  switch (type) {
    case WEIR_EMULATED_FP64:
      return costs.fp64_tflops;
    case WEIR_EMULATED_TF32:
      return costs.tf32_tflops;
    case WEIR_EMULATED_BF16:
      return costs.bf16_tflops;
    case WEIR_EMULATED_FP16:
      return costs.fp16_tflops;
    case WEIR_EMULATED_FP8:
      return costs.fp8_tflops;
    case WEIR_EMULATED_INT8:
      return costs.int8_tops;
    default:
      return costs.fp32_tflops;
  }
}

}  // namespace

Nanos WorkTime(const WeirEmulatedWork& work) {
  return std::max(TimeFor(work.bytes, TheCosts().memory_gbps),
                  TimeFor(work.operations, TeraOperations(work.type) * 1e3));
}

Demand KernelDemand(size_t kernels, const WeirEmulatedWork& work) {
  Demand demand;
  demand.time = static_cast<Nanos>(kernels) * Micros(TheCosts().kernel_us) + WorkTime(work);
  return demand;
}

Demand CopyDemand(Route route, size_t bytes, bool pageable) {
  const Costs& costs = TheCosts();
  Demand demand;
  if (route == Route::kInside) {
    demand.time = Micros(costs.copy_us) + TimeFor(2.0 * static_cast<double>(bytes), costs.memory_gbps);
    return demand;
  }
  const bool in = route == Route::kIn;
  demand.engine = in ? Engine::kCopyIn : Engine::kCopyOut;
  demand.time = Micros(costs.copy_us);
  demand.bytes = static_cast<double>(bytes);
  const double pinned = route == Route::kPeer ? std::min(costs.h2d_gbps, costs.d2h_gbps)
                        : in                  ? costs.h2d_gbps
                                              : costs.d2h_gbps;
  demand.gbps = pageable ? std::min(pinned, in ? costs.pageable_h2d_gbps : costs.pageable_d2h_gbps) : pinned;
  demand.both_gbps = std::min(demand.gbps, in ? costs.h2d_both_gbps : costs.d2h_both_gbps);
  return demand;
}

Demand FillDemand(size_t bytes) {
  return KernelDemand(1, {static_cast<double>(bytes), 0, WEIR_EMULATED_FP32});
}

}  // namespace weir::emulated
