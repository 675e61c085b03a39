#include "tools/emulated_gpu/torch_kernels/tensor_bytes.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

namespace weir::emulated {
namespace {

constexpr size_t kMostRowSets = 64;

struct Dimension {
  size_t stride, size;  // bytes, elements
};

// Dimensions from the innermost out, without those that add no byte.
c10::SmallVector<Dimension, 8> DimensionsOf(const c10::TensorImpl& tensor) {
  c10::SmallVector<Dimension, 8> dimensions;
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1 || strides[i] == 0) continue;
    dimensions.push_back(
        {static_cast<size_t>(strides[i]) * tensor.itemsize(), static_cast<size_t>(sizes[i])});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  return dimensions;
}

void AddStrided(const c10::TensorImpl& tensor, bool written, Accesses& accesses) {
  const c10::DataPtr& pointer = tensor.unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  if (tensor.numel() == 0 || pointer.get() == nullptr || !pointer.device().is_cuda()) return;
  const uintptr_t first = reinterpret_cast<uintptr_t>(pointer.get()) +
                          static_cast<size_t>(tensor.storage_offset()) * tensor.itemsize();
  WeirEmulatedAccess access{first,
                            tensor.itemsize(),
                            written ? WEIR_EMULATED_WRITE : WEIR_EMULATED_READ,
                            0,
                            1,
                            accesses.empty() ? 0 : accesses.back().tensor + 1,
                            1};
  const auto dimensions = DimensionsOf(tensor);
  size_t next = 0, span = tensor.itemsize();
  for (const Dimension& dimension : dimensions) span += dimension.stride * (dimension.size - 1);
  for (; next < dimensions.size() && dimensions[next].stride <= access.size; ++next) {
    access.size += dimensions[next].stride * (dimensions[next].size - 1);
  }
  if (next < dimensions.size()) {
    access.pitch = dimensions[next].stride;
    access.rows = dimensions[next++].size;
  }
  for (; next < dimensions.size() && dimensions[next].stride == access.pitch * access.rows; ++next) {
    access.rows *= dimensions[next].size;
  }
  size_t sets = 1;
  for (size_t i = next; i < dimensions.size(); ++i) sets *= dimensions[i].size;
  if (sets > kMostRowSets) {
    accesses.push_back({first, span, WEIR_EMULATED_UNKNOWN, 0, 1, access.tensor, 1});
    return;
  }
  access.alone = sets == 1 ? 1 : 0;
  for (size_t set = 0; set < sets; ++set) {
    size_t rest = set;
    access.begin = first;
    for (size_t i = next; i < dimensions.size(); ++i) {
      access.begin += rest % dimensions[i].size * dimensions[i].stride;
      rest /= dimensions[i].size;
    }
    accesses.push_back(access);
  }
}

}  // namespace

void AddBytes(const at::Tensor& tensor, bool written, Accesses& accesses) {
  if (!tensor.defined()) return;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set().has(c10::DispatchKey::Python))
    return;  // a wrapper; its parts come with the ops on them
  if (impl->layout() == c10::kStrided) {
    if (impl->has_storage() && !impl->is_python_dispatch()) AddStrided(*impl, written, accesses);
  } else if (auto* coo = dynamic_cast<at::SparseTensorImpl*>(impl)) {
    AddBytes(coo->indices(), written, accesses);
    AddBytes(coo->values(), written, accesses);
  } else if (auto* compressed = dynamic_cast<at::SparseCsrTensorImpl*>(impl)) {
    AddBytes(compressed->compressed_indices(), written, accesses);
    AddBytes(compressed->plain_indices(), written, accesses);
    AddBytes(compressed->values(), written, accesses);
  }
}

void AddBytes(const c10::IValue& value, bool written, Accesses& accesses) {
  if (value.isTensor()) {
    AddBytes(value.toTensor(), written, accesses);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) AddBytes(tensor, written, accesses);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value()) AddBytes(*tensor, written, accesses);
    }
  }
}

bool IsWritten(const c10::Argument& argument) {
  if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) return true;
  return argument.name() == "running_mean" || argument.name() == "running_var";
}

}  // namespace weir::emulated
