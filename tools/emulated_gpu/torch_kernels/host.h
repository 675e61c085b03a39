// What the emulator gave this library at install: constant afterwards.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_HOST_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_HOST_H_

#include "tools/emulated_gpu/device/torch_abi.h"

namespace weir::emulated {

const WeirEmulatedHost& Host();

// Names the op of this thread for reports, for its lifetime.
class OpName {
 public:
  explicit OpName(const char* name) { Host().set_op(name); }
  ~OpName() { Host().set_op(""); }
  OpName(const OpName&) = delete;
  OpName& operator=(const OpName&) = delete;
};

}  // namespace weir::emulated

#endif
