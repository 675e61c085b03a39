// Dropout as the CPU does it: noise is Bernoulli / keep, output is input * noise. The order of roundings is
// the CPU's (a division in the tensor's type), so that results are bit-identical to at::dropout on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "tools/emulated_gpu/torch_kernels/cuda_only.h"

namespace weir::emulated {
namespace {

using at::Tensor;

// The noise of a kept element.
Tensor KeptNoise(const Tensor& like, double keep) { return at::ones({}, like.options()).div_(keep); }

std::tuple<Tensor, Tensor> NativeDropout(const Tensor& input, double drop, std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input, input.options().dtype(c10::kBool))};
  if (!train.value_or(true) || drop == 0) {
    return {input.clone(), at::ones_like(input, input.options().dtype(c10::kBool))};
  }
  if (drop == 1) return {at::zeros_like(input), at::zeros_like(input, input.options().dtype(c10::kBool))};
  const Tensor noise = at::empty_like(input).bernoulli_(1 - drop);
  const Tensor mask = noise.to(c10::kBool);
  return {input * noise.div_(1 - drop), mask};
}

Tensor NativeDropoutBackward(const Tensor& gradient, const Tensor& mask, double scale) {
  if (scale == 0) return at::zeros_like(gradient);
  return gradient * (mask.to(gradient.scalar_type()) * KeptNoise(gradient, 1 / scale));
}

// `keep` is the probability to keep, unlike above.
std::tuple<Tensor, Tensor> FusedDropout(const Tensor& input, double keep,
                                        std::optional<at::Generator> generator) {
  const Tensor noise = at::empty_like(input).bernoulli_(keep, std::move(generator));
  const Tensor mask = noise.to(c10::kByte);
  return {input * noise.div_(keep), mask};
}

Tensor MaskedScale(const Tensor& input, const Tensor& mask, double scale) {
  return input * (mask.to(input.scalar_type()) * scale);
}

}  // namespace

void RegisterDropout(torch::Library& cuda) {
  cuda.impl("native_dropout", TORCH_FN(NativeDropout));
  cuda.impl("native_dropout_backward", TORCH_FN(NativeDropoutBackward));
  cuda.impl("_fused_dropout", TORCH_FN(FusedDropout));
  cuda.impl("_masked_scale", TORCH_FN(MaskedScale));
}

}  // namespace weir::emulated
