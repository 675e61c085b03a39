// Kernels as PTX, which the driver compiles for the card that it finds.
#ifndef WEIR_TESTS_CONFORMANCE_KERNELS_H_
#define WEIR_TESTS_CONFORMANCE_KERNELS_H_

#include "tests/conformance/device_under_test.h"

namespace weir::conformance {

// hold(flag, limit): one thread that runs until the 32-bit word at `flag` is not 0, `limit` ns at most.
// fill(to, value, words): writes 32-bit words; any grid.
extern const char kPtx[];

struct Kernels {
  CUmodule module = nullptr;
  CUfunction hold = nullptr, fill = nullptr;
};
// Loads them into the current context; an error of the driver otherwise.
CUresult Load(Kernels* kernels);
CUresult Hold(const Kernels& kernels, uint32_t* pinned_flag, CUstream stream);  // two seconds at most
CUresult Fill(const Kernels& kernels, CUdeviceptr to, uint32_t value, size_t words, CUstream stream);

}  // namespace weir::conformance

#endif
