// What happens to each aten op that has a CUDA kernel, with kernels `cpu`. The lists are data; `install.cc`
// acts.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_TREATMENT_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_TREATMENT_H_

#include <c10/core/DispatchKey.h>

#include <string>

namespace weir::emulated {

enum class Treatment {
  kOnCpu,     // the CPU kernel over the same bytes
  kOriginal,  // torch's own code: it only handles shapes, storages and streams, and launches nothing
  kWritten,   // a version in this folder
  kRefuse,    // an error by name
};

// `name` with its overload ("aten::add.Tensor"); `has_cpu`: the CPU key of the same kind has a kernel.
Treatment TreatmentOf(const std::string& name, c10::DispatchKey key, bool has_cpu);

// Composite on every device, but they pick a backend by the device: run whole on the CPU, they pick what the
// CPU does.
inline constexpr const char* kComposedOnCpu[] = {
    "aten::convolution",
    "aten::convolution_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
};

// A kernel of its own on CUDA, composed of other ops on the CPU: composed here too, so that results are the
// CPU's.
inline constexpr const char* kCompositeOnCpu[] = {"aten::_fused_rms_norm"};

}  // namespace weir::emulated

#endif
