// Which CPU generator stands for a CUDA generator.
//
// The default CUDA generator is the default CPU generator as long as both were seeded and restored together,
// so that a script gives the numbers of the same script on the CPU. When only the CUDA one was seeded or
// restored, and for every other CUDA generator, a CPU generator of its own follows it: same (seed, offset),
// same numbers. Each op that draws moves the CUDA offset on, as a kernel would.
#ifndef WEIR_EMULATED_GPU_TORCH_KERNELS_RANDOM_STATE_H_
#define WEIR_EMULATED_GPU_TORCH_KERNELS_RANDOM_STATE_H_

#include <ATen/core/Tensor.h>
// Generator.h needs the whole Tensor.
#include <ATen/core/Generator.h>

#include <optional>

namespace weir::emulated {

// Throws c10::Error for a generator of another device, as CUDA ops do.
// For the duration of one op that draws from `device` (undefined: the default CUDA generator). Holds no lock
// while the op runs: torch's generators are used by one thread at a time, as on CUDA.
class Drawing {
 public:
  explicit Drawing(const std::optional<at::Generator>& device);
  ~Drawing();
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;

  // The generator argument for the CPU kernel: none means the default one.
  const std::optional<at::Generator>& host() const { return host_; }

 private:
  at::Generator device_;
  std::optional<at::Generator> host_;
  std::optional<at::Tensor> default_before_;  // the default CPU state that a detached default stands in for
};

}  // namespace weir::emulated

#endif
