#include "tools/emulated_gpu/torch_kernels/attention.h"

#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace weir::emulated {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// A CPU tensor with the shape of `tensor` and no bytes: the choice looks at shapes only.
Tensor ShapeOnCpu(const Tensor& tensor) {
  auto storage =
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
                                            c10::DataPtr(nullptr, c10::Device(c10::kCPU)), nullptr, false);
  auto shape = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  shape.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  if (tensor.requires_grad()) shape.requires_grad_(true);
  return shape;
}

int64_t Choose(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& mask,
               double dropout, bool causal, std::optional<double> scale, bool grouped) {
  if (query.is_nested() || key.is_nested() || value.is_nested())
    return static_cast<int64_t>(sdp::SDPBackend::math);
  const OptionalTensor mask_shape =
      mask.has_value() && mask->defined() ? OptionalTensor(ShapeOnCpu(*mask)) : mask;
  const int64_t choice = at::_fused_sdp_choice(ShapeOnCpu(query), ShapeOnCpu(key), ShapeOnCpu(value),
                                               mask_shape, dropout, causal, scale, grouped);
  switch (static_cast<sdp::SDPBackend>(choice)) {
    case sdp::SDPBackend::flash_attention:
      return static_cast<int64_t>(sdp::SDPBackend::efficient_attention);
    case sdp::SDPBackend::error:  // only backends that the CPU lacks are allowed: the plain one computes the
                                  // same
      return static_cast<int64_t>(sdp::SDPBackend::math);
    default:
      return choice;
  }
}

void NeedNoDropout(double dropout, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(dropout == 0.0, "emulated GPU: ", name, " with dropout has no CPU version");
}

Tensor EmptySeed(const Tensor& like) { return at::empty({}, like.options().dtype(c10::kLong)); }

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> Flash(
    const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool causal, bool,
    std::optional<double> scale) {
  NeedNoDropout(dropout, "aten::_scaled_dot_product_flash_attention");
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout,
                                                                             causal, std::nullopt, scale);
  return {output,           logsumexp,         Tensor(),
          Tensor(),         query.sym_size(2), key.sym_size(2),
          EmptySeed(query), EmptySeed(query),  at::empty({0}, query.options())};
}

std::tuple<Tensor, Tensor, Tensor> FlashBackward(const Tensor& gradient, const Tensor& query,
                                                 const Tensor& key, const Tensor& value, const Tensor& output,
                                                 const Tensor& logsumexp, const Tensor&, const Tensor&,
                                                 c10::SymInt, c10::SymInt, double dropout, bool causal,
                                                 const Tensor&, const Tensor&, std::optional<double> scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      gradient, query, key, value, output, logsumexp, dropout, causal, std::nullopt, scale);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> Efficient(const Tensor& query, const Tensor& key,
                                                     const Tensor& value, const OptionalTensor& bias, bool,
                                                     double dropout, bool causal,
                                                     std::optional<double> scale) {
  NeedNoDropout(dropout, "aten::_scaled_dot_product_efficient_attention");
  auto [output, logsumexp] =
      at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout, causal, bias, scale);
  return {output, logsumexp, EmptySeed(query), EmptySeed(query)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> EfficientBackward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
    const Tensor& output, const Tensor& logsumexp, const Tensor&, const Tensor&, double dropout,
    std::array<bool, 4> wanted, bool causal, std::optional<double> scale) {
  if (!gradient.defined()) return {};
  TORCH_CHECK_NOT_IMPLEMENTED(
      !bias.defined() || !wanted[3],
      "emulated GPU: aten::_scaled_dot_product_efficient_attention_backward has no CPU "
      "version for the gradient of the bias");
  const OptionalTensor mask = bias.defined() ? OptionalTensor(bias) : std::nullopt;
  auto [query_gradient, key_gradient, value_gradient] =
      at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, query, key, value, output, logsumexp,
                                                               dropout, causal, mask, scale);
  return {query_gradient, key_gradient, value_gradient, Tensor()};
}

}  // namespace

void ChooseAttentionAsCpu() { at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&Choose); }

void RegisterAttention(torch::Library& cuda) {
  cuda.impl("_scaled_dot_product_flash_attention", TORCH_FN(Flash));
  cuda.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(FlashBackward));
  cuda.impl("_scaled_dot_product_efficient_attention", TORCH_FN(Efficient));
  cuda.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(EfficientBackward));
}

}  // namespace weir::emulated
