// LSTM and GRU cells, from the formulas in torch.nn.LSTMCell and torch.nn.GRUCell. `workspace` is ours: what
// backward needs, in the shapes that CUDA documents through its callers (4 and 5 hidden sizes wide).
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "tools/emulated_gpu/torch_kernels/cuda_only.h"

namespace weir::emulated {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor WithBias(const Tensor& gates, const OptionalTensor& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

Tensor SigmoidSlope(const Tensor& output) { return output * (1 - output); }
Tensor TanhSlope(const Tensor& output) { return 1 - output * output; }

std::tuple<Tensor, Tensor, Tensor> LstmCell(const Tensor& input_gates, const Tensor& hidden_gates,
                                            const Tensor& cx, const OptionalTensor& input_bias,
                                            const OptionalTensor& hidden_bias) {
  const Tensor gates = WithBias(input_gates, input_bias) + WithBias(hidden_gates, hidden_bias);
  const auto parts = gates.chunk(4, 1);  // input, forget, cell, output
  const Tensor in = at::sigmoid(parts[0]), forget = at::sigmoid(parts[1]), cell = at::tanh(parts[2]);
  const Tensor out = at::sigmoid(parts[3]);
  const Tensor cy = forget * cx + in * cell;
  return {out * at::tanh(cy), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> LstmCellBackward(const OptionalTensor& grad_hy,
                                                    const OptionalTensor& grad_cy, const Tensor& cx,
                                                    const Tensor& cy, const Tensor& workspace,
                                                    bool has_bias) {
  const bool with_hy = grad_hy.has_value() && grad_hy->defined();
  const bool with_cy = grad_cy.has_value() && grad_cy->defined();
  if (!with_hy && !with_cy) return {};
  const auto parts = workspace.chunk(4, 1);
  const Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const Tensor cy_tanh = at::tanh(cy);
  const Tensor hy = with_hy ? *grad_hy : at::zeros_like(cy);
  Tensor into_cell = hy * out * TanhSlope(cy_tanh);
  if (with_cy) into_cell = into_cell + *grad_cy;
  const Tensor gates = at::cat({into_cell * cell * SigmoidSlope(in), into_cell * cx * SigmoidSlope(forget),
                                into_cell * in * TanhSlope(cell), hy * cy_tanh * SigmoidSlope(out)},
                               1);
  return {gates, into_cell * forget, has_bias ? gates.sum(0, /*keepdim=*/false) : Tensor()};
}

std::tuple<Tensor, Tensor> GruCell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                   const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto from_input = WithBias(input_gates, input_bias).chunk(3, 1);  // reset, update, new
  const auto from_hidden = WithBias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = at::sigmoid(from_input[0] + from_hidden[0]);
  const Tensor update = at::sigmoid(from_input[1] + from_hidden[1]);
  const Tensor fresh = at::tanh(from_input[2] + reset * from_hidden[2]);
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> GruCellBackward(const Tensor& grad_hy,
                                                                   const Tensor& workspace, bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3],
               &hidden_new = parts[4];
  const Tensor into_new = grad_hy * (1 - update) * TanhSlope(fresh);
  const Tensor into_update = grad_hy * (hx - fresh) * SigmoidSlope(update);
  const Tensor into_reset = into_new * hidden_new * SigmoidSlope(reset);
  const Tensor input = at::cat({into_reset, into_update, into_new}, 1);
  const Tensor hidden = at::cat({into_reset, into_update, into_new * reset}, 1);
  const Tensor input_bias = has_bias ? input.sum(0, /*keepdim=*/false) : Tensor();
  const Tensor hidden_bias = has_bias ? hidden.sum(0, /*keepdim=*/false) : Tensor();
  return {input, hidden, grad_hy * update, input_bias, hidden_bias};
}

}  // namespace

void RegisterRecurrentCells(torch::Library& cuda) {
  cuda.impl("_thnn_fused_lstm_cell", TORCH_FN(LstmCell));
  cuda.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(LstmCellBackward));
  cuda.impl("_thnn_fused_gru_cell", TORCH_FN(GruCell));
  cuda.impl("_thnn_fused_gru_cell_backward", TORCH_FN(GruCellBackward));
}

}  // namespace weir::emulated
