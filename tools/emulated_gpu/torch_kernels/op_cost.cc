#include "tools/emulated_gpu/torch_kernels/op_cost.h"

#include <ATen/Context.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace weir::emulated {

using Arguments = c10::ArrayRef<const c10::IValue>;

namespace {

double Numel(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? static_cast<double>(value.toTensor().numel()) : 0;
}

double SizeOf(const c10::IValue& value, int64_t dimension) {
  return value.isTensor() && value.toTensor().dim() > std::max<int64_t>(dimension, -1 - dimension)
             ? static_cast<double>(value.toTensor().size(dimension))
             : 0;
}

double NumelOfList(const c10::IValue& value) {
  double sum = 0;
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) sum += static_cast<double>(tensor.numel());
  }
  return sum;
}

bool Contains(std::initializer_list<const char*> list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Traffic TrafficOf(const std::string& name, const std::string& overload) {
  if (Contains({"aten::embedding", "aten::index_select", "aten::index", "aten::gather", "aten::take",
                "aten::nll_loss_forward", "aten::nll_loss", "aten::nll_loss2d_forward",
                "aten::_embedding_bag", "aten::multinomial"},
               name)) {
    return Traffic::kPicks;
  }
  if (Contains({"aten::index_put_", "aten::_index_put_impl_", "aten::index_add_", "aten::index_copy_",
                "aten::scatter_", "aten::scatter_add_"},
               name)) {
    return Traffic::kAddsInto;
  }
  if (overload.find("out") != std::string::npos ||
      Contains({"aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_",
                "aten::bernoulli_", "aten::random_", "aten::exponential_", "aten::_foreach_zero_",
                "aten::_foreach_copy_", "aten::eye_"},
               name)) {
    return Traffic::kOverwrites;
  }
  return Traffic::kPlain;
}

}  // namespace

// Operations of a call; a multiplication and an addition are two.
struct Formulas {
  // [..., m, k] times [..., k, n], the factors are arguments `first` and the next.
  static double Product(const OpCost& cost, Arguments arguments) {
    if (arguments.size() < cost.first_ + 2) return 0;
    const c10::IValue& right = arguments[cost.first_ + 1];
    const double columns = right.isTensor() && right.toTensor().dim() >= 2 ? SizeOf(right, -1) : 1;
    return 2 * Numel(arguments[cost.first_]) * columns;
  }

  // Each of the larger side's elements meets the weights of one output (or input) channel.
  static double Convolution(const OpCost&, Arguments arguments) {  // input, weight, ...
    const double weights_of_channel = Numel(arguments[1]) / std::max(1.0, SizeOf(arguments[1], 0));
    return 2 * OutputNumel(arguments) * weights_of_channel;
  }
  static double TransposedConvolution(const OpCost&, Arguments arguments) {
    return 2 * Numel(arguments[0]) * Numel(arguments[1]) / std::max(1.0, SizeOf(arguments[1], 0));
  }
  static double AnyConvolution(const OpCost& cost, Arguments arguments) {  // aten::convolution
    const bool transposed = arguments.size() > 6 && arguments[6].isBool() && arguments[6].toBool();
    return transposed ? TransposedConvolution(cost, arguments) : Convolution(cost, arguments);
  }
  // grad_output, input, weight, ..., transposed at 7: one product for each gradient that is wanted.
  static double ConvolutionBackward(const OpCost&, Arguments arguments) {
    const bool transposed = arguments.size() > 7 && arguments[7].isBool() && arguments[7].toBool();
    const double one = 2 * Numel(arguments[transposed ? 1 : 0]) * Numel(arguments[2]) /
                       std::max(1.0, SizeOf(arguments[2], 0));
    const c10::IValue& mask = arguments.back();
    double products = 2;
    if (mask.isBoolList() && mask.toBoolList().size() >= 2) {
      products = (mask.toBoolList().get(0) ? 1 : 0) + (mask.toBoolList().get(1) ? 1 : 0);
    }
    return products * one;
  }

  // Two products over [batch, heads, length, width]; a causal mask leaves half of them.
  static double Attention(const OpCost& cost, Arguments arguments) {
    return 2 * OneAttention(cost, arguments, -2);
  }
  static double AttentionBackward(const OpCost& cost, Arguments arguments) {
    return 5 * OneAttention(cost, arguments, -2);
  }
  // The same over [batch, length, heads, width].
  static double InnerAttention(const OpCost& cost, Arguments arguments) {
    return 2 * OneAttention(cost, arguments, -3);
  }
  static double InnerAttentionBackward(const OpCost& cost, Arguments arguments) {
    return 5 * OneAttention(cost, arguments, -3);
  }

  // input [time, batch, width], weights: each weight is used once for each step and sample.
  static double Recurrent(const OpCost&, Arguments arguments) {
    return 2 * NumelOfList(arguments[1]) * SizeOf(arguments[0], 0) * SizeOf(arguments[0], 1);
  }
  static double RecurrentBackward(const OpCost& cost, Arguments arguments) {
    return 2 * Recurrent(cost, arguments);
  }

  // Some 15 operations for each parameter: memory decides, whatever the number.
  static double Optimizer(const OpCost&, Arguments arguments) { return 15 * NumelOfList(arguments[0]); }

 private:
  static double OneAttention(const OpCost& cost, Arguments arguments, int64_t length_dimension) {
    if (arguments.size() < cost.first_ + 2) return 0;
    const double keys = SizeOf(arguments[cost.first_ + 1], length_dimension);
    const double half = cost.causal_ >= 0 && IsCausal(arguments[cost.causal_]) ? 0.5 : 1;
    return half * 2 * Numel(arguments[cost.first_]) * keys;
  }
  static bool IsCausal(const c10::IValue& value) {
    return value.isBool() ? value.toBool() : value.isInt() && value.toInt() != 0;
  }

  // Padding, stride and dilation come in the order that the operator has.
  static double OutputNumel(Arguments arguments) {
    const at::Tensor& input = arguments[0].toTensor();
    const at::Tensor& weight = arguments[1].toTensor();
    std::vector<std::vector<int64_t>> lists;
    for (size_t i = 2; i < arguments.size() && lists.size() < 3; ++i) {
      if (arguments[i].isIntList()) lists.push_back(arguments[i].toIntVector());
    }
    if (lists.size() < 3 || input.dim() < 3 || weight.dim() != input.dim())
      return static_cast<double>(input.numel());
    const bool bias = !arguments[2].isIntList();  // convolution: stride, padding, dilation
    const auto &stride = bias ? lists[0] : lists[1], &padding = bias ? lists[1] : lists[0],
               &dilation = lists[2];
    double numel = static_cast<double>(input.size(0) * weight.size(0));
    for (int64_t i = 2; i < input.dim(); ++i) {
      const auto at = [&](const std::vector<int64_t>& list) {
        return list.empty() ? int64_t{1} : list[std::min<size_t>(i - 2, list.size() - 1)];
      };
      numel *= static_cast<double>(
          (input.size(i) + 2 * at(padding) - at(dilation) * (weight.size(i) - 1) - 1) / at(stride) + 1);
    }
    return numel;
  }
};

namespace {

struct Formula {
  double (*count)(const OpCost&, Arguments);
  size_t first;  // the first factor
};

const Formula* FormulaOf(const std::string& name) {
  static const auto* formulas = new std::unordered_map<std::string, Formula>{
      {"aten::mm", {Formulas::Product, 0}},
      {"aten::bmm", {Formulas::Product, 0}},
      {"aten::mv", {Formulas::Product, 0}},
      {"aten::dot", {Formulas::Product, 0}},
      {"aten::addmm", {Formulas::Product, 1}},
      {"aten::addmm_", {Formulas::Product, 1}},
      {"aten::_addmm_activation", {Formulas::Product, 1}},
      {"aten::addmv", {Formulas::Product, 1}},
      {"aten::baddbmm", {Formulas::Product, 1}},
      {"aten::baddbmm_", {Formulas::Product, 1}},
      {"aten::addbmm", {Formulas::Product, 1}},
      {"aten::_scaled_mm", {Formulas::Product, 0}},
      {"aten::_int_mm", {Formulas::Product, 0}},
      {"aten::convolution", {Formulas::AnyConvolution, 0}},
      {"aten::_convolution", {Formulas::AnyConvolution, 0}},
      {"aten::cudnn_convolution", {Formulas::Convolution, 0}},
      {"aten::cudnn_convolution_relu", {Formulas::Convolution, 0}},
      {"aten::cudnn_convolution_transpose", {Formulas::TransposedConvolution, 0}},
      {"aten::convolution_backward", {Formulas::ConvolutionBackward, 1}},
      {"aten::_scaled_dot_product_flash_attention", {Formulas::Attention, 0}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", {Formulas::Attention, 0}},
      {"aten::_scaled_dot_product_efficient_attention", {Formulas::Attention, 0}},
      {"aten::_scaled_dot_product_cudnn_attention", {Formulas::Attention, 0}},
      {"aten::_flash_attention_forward", {Formulas::InnerAttention, 0}},
      {"aten::_efficient_attention_forward", {Formulas::InnerAttention, 0}},
      {"aten::_cudnn_attention_forward", {Formulas::Attention, 0}},
      {"aten::_scaled_dot_product_flash_attention_backward", {Formulas::AttentionBackward, 1}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", {Formulas::AttentionBackward, 1}},
      {"aten::_scaled_dot_product_efficient_attention_backward", {Formulas::AttentionBackward, 1}},
      {"aten::_scaled_dot_product_cudnn_attention_backward", {Formulas::AttentionBackward, 1}},
      {"aten::_flash_attention_backward", {Formulas::InnerAttentionBackward, 1}},
      {"aten::_efficient_attention_backward", {Formulas::InnerAttentionBackward, 1}},
      {"aten::_cudnn_attention_backward", {Formulas::AttentionBackward, 1}},
      {"aten::_cudnn_rnn", {Formulas::Recurrent, 0}},
      {"aten::_cudnn_rnn_backward", {Formulas::RecurrentBackward, 0}},
      {"aten::_fused_adam_", {Formulas::Optimizer, 0}},
      {"aten::_fused_adamw_", {Formulas::Optimizer, 0}},
      {"aten::_fused_sgd_", {Formulas::Optimizer, 0}},
      {"aten::_fused_adagrad_", {Formulas::Optimizer, 0}},
  };
  const auto found = formulas->find(name);
  return found == formulas->end() ? nullptr : &found->second;
}

int TypeOf(const c10::IValue& value, bool convolves) {
  at::ScalarType type = at::kFloat;
  if (value.isTensor() && value.toTensor().defined()) type = value.toTensor().scalar_type();
  switch (type) {
    case at::kDouble:
    case at::kComplexDouble:
      return WEIR_EMULATED_FP64;
    case at::kBFloat16:
      return WEIR_EMULATED_BF16;
    case at::kHalf:
      return WEIR_EMULATED_FP16;
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e5m2:
      return WEIR_EMULATED_FP8;
    case at::kChar:
      return WEIR_EMULATED_INT8;
    default:
      break;
  }
  const at::Context& context = at::globalContext();
  return (convolves ? context.allowTF32CuDNN() : context.allowTF32CuBLAS()) ? WEIR_EMULATED_TF32
                                                                            : WEIR_EMULATED_FP32;
}

// Of argument `index`, which the operator may write.
double MovesOf(Traffic traffic, size_t index, bool written) {
  const bool picked = traffic == Traffic::kPicks || traffic == Traffic::kAddsInto;
  if (picked && index == 0) return 0;
  return traffic == Traffic::kAddsInto || (written && traffic != Traffic::kOverwrites) ? 2 : 1;
}

}  // namespace

OpCost::OpCost(const c10::FunctionSchema& schema)
    : traffic_(TrafficOf(schema.name(), schema.overload_name())) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    // The fused optimizers may scale gradients in place; they do not in the usual case.
    moves_.push_back(MovesOf(traffic_, i, IsWritten(argument) && argument.name() != "grads"));
    if (argument.name() == "is_causal" || argument.name() == "custom_mask_type")
      causal_ = static_cast<int>(i);
  }
  if (const Formula* formula = FormulaOf(schema.name())) {
    count_ = formula->count;
    first_ = formula->first;
  }
  convolves_ = schema.name().find("conv") != std::string::npos;
}

void OpCost::AddOperations(Arguments arguments, WeirEmulatedWork* work) const {
  if (count_ == nullptr || arguments.size() <= first_ + 1) return;
  work->operations = count_(*this, arguments);
  work->type = TypeOf(arguments[first_], convolves_);
  const c10::IValue& first = arguments[first_];
  if (first.isTensor() && first.toTensor().is_complex()) work->operations *= 4;
}

}  // namespace weir::emulated
