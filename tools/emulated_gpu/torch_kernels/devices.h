// Which device an op is on: what torch's own CUDA kernels find out before they start.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_DEVICES_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_DEVICES_H_

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/ArrayRef.h>

namespace weir::emulated {

// The current one of this thread.
c10::Device CurrentDevice();

// Makes the device of the CUDA tensors among the arguments, else the one that they name, current while it lives. Tensors of two
// devices are torch's error.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(c10::ArrayRef<const c10::IValue> arguments);

 private:
  c10::OptionalDeviceGuard guard_;
};

}  // namespace weir::emulated

#endif
