#include "tools/emulated_gpu/torch_kernels/devices.h"

#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace weir::emulated {
namespace {

const c10::impl::VirtualGuardImpl& Cuda() {
  static const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  return cuda;
}

bool SeveralDevices() {
  static const bool several = Cuda().deviceCount() > 1;
  return several;
}

std::optional<c10::Device> DeviceOfTensors(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.is_cuda()) return tensor.device();
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined() && tensor.is_cuda()) return tensor.device();
    }
  }
  return std::nullopt;
}

}  // namespace

c10::Device CurrentDevice() { return SeveralDevices() ? Cuda().getDevice() : c10::Device(c10::kCUDA, 0); }

OnDeviceOf::OnDeviceOf(c10::ArrayRef<const c10::IValue> arguments) {
  if (!SeveralDevices()) return;
  std::optional<c10::Device> named, found;
  for (const c10::IValue& value : arguments) {
    if (const auto device = DeviceOfTensors(value)) {
      const bool mixed = found.has_value() && *found != *device && value.isTensor();
      TORCH_CHECK(!mixed, "Expected all tensors to be on the same device, but found at least two devices, ",
                  *found, " and ", *device, "!");
      if (!found.has_value()) found = device;
    }
    if (value.isDevice() && value.toDevice().is_cuda() && value.toDevice().has_index())
      named = value.toDevice();
  }
  if (!found.has_value()) found = named;
  if (found.has_value()) guard_.reset_device(*found);
}

}  // namespace weir::emulated
