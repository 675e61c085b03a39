#include "pytorch_plugin/traced_tensors.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

#include "trace/format.h"

namespace weir::plugin {
namespace {

// By the fields alone: grad_fn() would make a view's anew.
uint32_t AutogradFlags(const c10::TensorImpl& impl) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(impl.autograd_meta());
  if (meta == nullptr) return 0;
  if (meta->grad_fn_) return trace::kDerived;
  return meta->requires_grad_ ? trace::kLeaf : 0;
}

uint64_t BytesOf(const c10::TensorImpl& impl) {
  return static_cast<uint64_t>(impl.numel()) * impl.itemsize();
}

void AddDense(c10::TensorImpl& impl, uint32_t flags, std::vector<WeirTraceTensor>* tensors) {
  c10::StorageImpl* storage = impl.unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr) return;
  const c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
  if (pointer.get() == nullptr || !pointer.device().is_cuda() || impl.has_symbolic_sizes_strides()) return;
  const bool together = impl.layout() == c10::kStrided &&
                        !impl.key_set().has(c10::DispatchKey::NestedTensor) &&
                        impl.is_non_overlapping_and_dense();
  char* data = static_cast<char*>(pointer.get());
  if (together) data += static_cast<uint64_t>(impl.storage_offset()) * impl.itemsize();
  tensors->push_back({pointer.get(), together ? data : nullptr, BytesOf(impl), flags | AutogradFlags(impl),
                      pointer.device().index()});
}

bool AddTensor(const at::Tensor& tensor, uint32_t flags, std::vector<WeirTraceTensor>* tensors) {
  if (!tensor.defined()) return false;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (impl->key_set().has(c10::DispatchKey::Python)) return false;
  if (impl->has_storage()) {
    AddDense(*impl, flags, tensors);
    return impl->device().is_cpu() && !impl->is_wrapped_number();
  }
  if (auto* coo = dynamic_cast<at::SparseTensorImpl*>(impl)) {
    AddTensor(coo->indices(), flags, tensors);
    AddTensor(coo->values(), flags, tensors);
  } else if (auto* compressed = dynamic_cast<at::SparseCsrTensorImpl*>(impl)) {
    AddTensor(compressed->compressed_indices(), flags, tensors);
    AddTensor(compressed->plain_indices(), flags, tensors);
    AddTensor(compressed->values(), flags, tensors);
  }
  return false;
}

}  // namespace

bool AddTensors(const c10::IValue& value, uint32_t flags, std::vector<WeirTraceTensor>* tensors) {
  if (value.isTensor()) return AddTensor(value.toTensor(), flags, tensors);
  if (!value.isList() && !value.isTuple()) return false;
  if (value.isIntList() || value.isDoubleList() || value.isBoolList()) return false;
  const c10::ArrayRef<c10::IValue> elements =
      value.isList() ? value.toListRef() : c10::ArrayRef<c10::IValue>(value.toTupleRef().elements());
  bool host = false;
  for (const c10::IValue& element : elements) {
    if (!element.isTensor() && !element.isList() && !element.isTuple() && !element.isNone()) break;
    host |= AddTensors(element, flags, tensors);
  }
  return host;
}

}  // namespace weir::plugin
