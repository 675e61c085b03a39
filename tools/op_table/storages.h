// The CUDA storages that an operator's argument or result reaches.
#ifndef WEIR_TOOLS_OP_TABLE_STORAGES_H_
#define WEIR_TOOLS_OP_TABLE_STORAGES_H_

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <string>

namespace weir::op_table {

// "strided", "coo", "compressed" or "nested".
inline const char* LayoutOf(const at::Tensor& tensor) {
  if (tensor.is_nested()) return "nested";
  if (tensor.layout() == c10::kStrided) return "strided";
  return tensor.is_sparse() ? "coo" : "compressed";
}

// The dense tensors inside `tensor`, with the name of the part ("" for the tensor itself).
inline void ForEachPart(const at::Tensor& tensor,
                        const std::function<void(const at::Tensor&, const char*)>& call) {
  if (!tensor.defined()) return;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (auto* coo = dynamic_cast<at::SparseTensorImpl*>(impl)) {
    call(coo->indices(), "indices");
    call(coo->values(), "values");
  } else if (auto* compressed = dynamic_cast<at::SparseCsrTensorImpl*>(impl)) {
    call(compressed->compressed_indices(), "compressed_indices");
    call(compressed->plain_indices(), "plain_indices");
    call(compressed->values(), "values");
  } else if (impl->has_storage()) {
    call(tensor, tensor.is_nested() ? "buffer" : "");
  }
}

// Every tensor in a value: itself, or those of a list, optional or not.
inline void ForEachTensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& call) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) call(value.toTensor());
  } else if (value.isList() || value.isTuple()) {
    for (const c10::IValue& element :
         value.isList() ? value.toListRef() : c10::ArrayRef<c10::IValue>(value.toTupleRef().elements())) {
      if (!element.isTensor() && !element.isList() && !element.isNone()) return;
      ForEachTensor(element, call);
    }
  }
}

// `call(storage, part)`: the part's name as in ForEachPart.
inline void ForEachStorage(const c10::IValue& value,
                           const std::function<void(c10::StorageImpl*, const char*)>& call) {
  if (value.isStorage()) return call(value.toStorage().unsafeGetStorageImpl(), "");
  ForEachTensor(value, [&call](const at::Tensor& tensor) {
    ForEachPart(tensor, [&call](const at::Tensor& part, const char* name) {
      if (part.defined() && part.is_cuda() && part.unsafeGetTensorImpl()->has_storage()) {
        call(part.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(), name);
      }
    });
  });
}

}  // namespace weir::op_table

#endif  // WEIR_TOOLS_OP_TABLE_STORAGES_H_
