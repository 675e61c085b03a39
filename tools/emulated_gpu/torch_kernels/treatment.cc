#include "tools/emulated_gpu/torch_kernels/treatment.h"

#include <algorithm>
#include <iterator>

namespace weir::emulated {
namespace {

constexpr const char* kDenseOriginal[] = {
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::resize_",
    "aten::set_",
    "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor",
    "aten::view",
    "aten::as_strided",
    "aten::_reshape_alias",
    "aten::unfold",
    "aten::view_as_real",
    "aten::view_as_complex",
    "aten::alias",
    "aten::lift_fresh",
    "aten::_efficientzerotensor",
    "aten::record_stream",
    "aten::_local_scalar_dense",
    "aten::_pin_memory",
    "aten::is_pinned",
    "aten::_use_cudnn_ctc_loss",
    "aten::_use_cudnn_ctc_loss.Tensor",
    "aten::_use_miopen_ctc_loss",
    "aten::_use_miopen_ctc_loss.Tensor",
};

// Shapes and parts of sparse tensors, and what is only composed of dense ops on those parts.
constexpr const char* kSparseOriginal[] = {
    "aten::permute",
    "aten::is_coalesced",
    "aten::_values",
    "aten::values",
    "aten::_indices",
    "aten::indices",
    "aten::_nnz",
    "aten::_dimI",
    "aten::_dimV",
    "aten::sparse_dim",
    "aten::dense_dim",
    "aten::_coalesced_",
    "aten::empty_like",
    "aten::copy_",
    "aten::clone",
    "aten::unsqueeze",
    "aten::zero_",
    "aten::view_as_real",
    "aten::view_as_complex",
    "aten::sparse_resize_",
    "aten::sparse_resize_and_clear_",
    "aten::resize_as_sparse_",
    "aten::copy_sparse_to_sparse_",
    "aten::_sparse_coo_tensor_with_dims",
    "aten::_sparse_coo_tensor_with_dims_and_tensors",
    "aten::empty.memory_format",
    // compressed layouts
    "aten::crow_indices",
    "aten::col_indices",
    "aten::ccol_indices",
    "aten::row_indices",
    "aten::select.int",
    "aten::resize_as_sparse_",
    "aten::resize_",
    "aten::_sparse_csr_tensor_unsafe",
    "aten::select_copy.int",
};

constexpr const char* kWritten[] = {
    "aten::native_dropout",
    "aten::native_dropout_backward",
    "aten::_fused_dropout",
    "aten::_masked_scale",
    "aten::_thnn_fused_lstm_cell",
    "aten::_thnn_fused_lstm_cell_backward_impl",
    "aten::_thnn_fused_gru_cell",
    "aten::_thnn_fused_gru_cell_backward",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::mm.dtype",
    "aten::mm.dtype_out",
    "aten::bmm.dtype",
    "aten::bmm.dtype_out",
    "aten::addmm.dtype",
    "aten::addmm.dtype_out",
    "aten::baddbmm.dtype",
    "aten::baddbmm.dtype_out",
};

template <typename List>
bool Contains(const List& list, const std::string& name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

Treatment TreatmentOf(const std::string& name, c10::DispatchKey key, bool has_cpu) {
  if (key == c10::DispatchKey::CUDA) {
    if (Contains(kDenseOriginal, name)) return Treatment::kOriginal;
    if (Contains(kWritten, name)) return Treatment::kWritten;
  } else if (Contains(kSparseOriginal, name)) {
    return Treatment::kOriginal;
  }
  return has_cpu ? Treatment::kOnCpu : Treatment::kRefuse;
}

}  // namespace weir::emulated
