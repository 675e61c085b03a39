#include "tools/emulated_gpu/device/values_abi.h"

#include "tools/emulated_gpu/device/value_reads.h"

using namespace weir::emulated;

static_assert(static_cast<int>(Verdict::kExact) == WEIR_EMULATED_EXACT &&
              static_cast<int>(Verdict::kExactUnlessFloatsDecide) ==
                  WEIR_EMULATED_EXACT_UNLESS_FLOATS_DECIDE &&
              static_cast<int>(Verdict::kEstimate) == WEIR_EMULATED_ESTIMATE);

extern "C" __attribute__((visibility("default"))) int weir_emulated_values(
    void (*each)(const WeirEmulatedValueRead*, void*), void* context) {
  if (each != nullptr) {
    for (const ValueRead& read : ReadsOfRun()) {
      const WeirEmulatedValueRead told{read.op.c_str(), read.place.c_str(), read.floats ? 1 : 0, read.times,
                                       read.bytes};
      each(&told, context);
    }
  }
  return static_cast<int>(VerdictOfRun());
}
