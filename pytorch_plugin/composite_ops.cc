#include "pytorch_plugin/composite_ops.h"

#include <algorithm>
#include <array>

namespace weir::plugin {
namespace {

constexpr std::string_view kAten = "aten::";

// New metadata over the same bytes, or questions about metadata.
constexpr std::array kViews = {
    "_has_compatible_shallow_copy_type",
    "_conj",
    "_fw_primal",
    "_indices",
    "_make_dual",
    "_neg_view",
    "_reshape_alias",
    "_unsafe_view",
    "_values",
    "alias",
    "as_strided",
    "ccol_indices",
    "col_indices",
    "crow_indices",
    "detach",
    "detach_",
    "diagonal",
    "expand",
    "indices",
    "lift_fresh",
    "permute",
    "row_indices",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "squeeze_",
    "t",
    "t_",
    "transpose",
    "transpose_",
    "unbind",
    "unfold",
    "unsqueeze",
    "unsqueeze_",
    "values",
    "view",
    "view_as_complex",
    "view_as_real",
};

// CompositeExplicitAutograd factories and copies: an allocation, then one op that fills it. As containers
// they let that op count as the evidence (R1) without which a tensor that is only ever made, such as a list
// of torch.ones, could not leave.
constexpr std::array kFactories = {
    "_to_copy",   "arange",    "clone",     "empty_like", "eye",      "full",         "full_like",
    "linspace",   "logspace",  "new_empty", "new_full",   "new_ones", "new_zeros",    "new_empty_strided",
    "ones",       "ones_like", "rand",      "rand_like",  "randint",  "randint_like", "randn",
    "randn_like", "randperm",  "zeros",     "zeros_like",
};

// CompositeImplicitAutograd: bodies made of at:: calls.
constexpr std::array kComposites = {
    "_autocast_to_full_precision",
    "_autocast_to_reduced_precision",
    "_batch_norm_impl_index",
    "_cast_Byte",
    "_cast_Char",
    "_cast_Double",
    "_cast_Float",
    "_cast_Half",
    "_cast_Int",
    "_cast_Long",
    "_cast_Short",
    "_convolution_mode",
    "_pad_circular",
    "_pad_enum",
    "_scaled_dot_product_attention_math",
    "absolute",
    "absolute_",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adjoint",
    "alpha_dropout",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "batch_norm",
    "broadcast_tensors",
    "broadcast_to",
    "cartesian_prod",
    "chain_matmul",
    "chunk",
    "clip",
    "clip_",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "conj",
    "contiguous",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "corrcoef",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cov",
    "cross_entropy_loss",
    "diff",
    "divide",
    "divide_",
    "dropout",
    "dropout_",
    "dsplit",
    "dstack",
    "einsum",
    "embedding_backward",
    "expand_as",
    "feature_alpha_dropout",
    "feature_dropout",
    "flatten",
    "flatten_dense_tensors",
    "fliplr",
    "flipud",
    "float_power",
    "frobenius_norm",
    "ger",
    "greater",
    "greater_equal",
    "group_norm",
    "gru",
    "gru_cell",
    "hinge_embedding_loss",
    "hsplit",
    "hstack",
    "imag",
    "inner",
    "instance_norm",
    "isclose",
    "isfinite",
    "isreal",
    "item",
    "kl_div",
    "kron",
    "l1_loss",
    "layer_norm",
    "less",
    "less_equal",
    "linalg_matmul",
    "linalg_multi_dot",
    "linalg_norm",
    "linalg_matrix_norm",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "lstm",
    "lstm_cell",
    "mH",
    "mT",
    "margin_ranking_loss",
    "matmul",
    "matrix_H",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "meshgrid",
    "moveaxis",
    "movedim",
    "multilabel_margin_loss",
    "multiply",
    "multiply_",
    "narrow",
    "negative",
    "negative_",
    "nll_loss",
    "nll_loss2d",
    "nll_loss_nd",
    "not_equal",
    "numpy_T",
    "one_hot",
    "outer",
    "pad",
    "pad_sequence",
    "pairwise_distance",
    "poisson_nll_loss",
    "positive",
    "ravel",
    "real",
    "relu6",
    "relu6_",
    "repeat_interleave",
    "requires_grad_",
    "reshape",
    "reshape_as",
    "resolve_conj",
    "resolve_neg",
    "rms_norm",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "row_stack",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "set_data",
    "softmax",
    "special_log_softmax",
    "special_softmax",
    "special_logsumexp",
    "square",
    "square_",
    "std",
    "std_mean",
    "subtract",
    "subtract_",
    "sum_to_size",
    "swapaxes",
    "swapdims",
    "take_along_dim",
    "tensor_split",
    "tensordot",
    "tile",
    "to",
    "triplet_margin_loss",
    "true_divide",
    "true_divide_",
    "type_as",
    "unflatten",
    "unflatten_dense_tensors",
    "unsafe_chunk",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
    "view_as",
    "vsplit",
    "vstack",
};

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

}  // namespace

bool IsContainerOp(std::string_view name) {
  if (!name.starts_with(kAten)) return false;
  name.remove_prefix(kAten.size());
  return Contains(kFactories, name) || Contains(kComposites, name);
}

bool IsViewOp(std::string_view name) {
  if (!name.starts_with(kAten)) return false;
  name.remove_prefix(kAten.size());
  return Contains(kViews, name);
}

bool ResultsCountAsSeen(std::string_view name) {
  return name.starts_with(kAten) && !Has(name, "empty") && !Has(name, "cudnn") && !Has(name, "workspace");
}

bool IsCollectiveOp(std::string_view name) {
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional") || name.starts_with("symm_mem::");
}

bool HasListOpName(std::string_view name) {
  return name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_") ||
         name.starts_with("aten::_amp_foreach_");
}

}  // namespace weir::plugin
