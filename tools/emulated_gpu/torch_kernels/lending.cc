#include "tools/emulated_gpu/torch_kernels/lending.h"

#include <ATen/EmptyTensor.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>

#include "tools/emulated_gpu/torch_kernels/devices.h"
#include "tools/emulated_gpu/torch_kernels/host.h"

namespace weir::emulated {
namespace {

// A tensor over `storage` with the shape of `like`.
at::Tensor Shaped(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  auto tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (like.is_conj()) impl->_set_conj(true);
  if (like.is_neg()) impl->_set_neg(true);
  return tensor;
}

void* CurrentStream() {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  return cuda.getStreamNativeHandle(cuda.getStream(CurrentDevice()));
}

void* BytesOf(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
}

at::SparseTensorImpl* SparseImpl(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

bool SameShape(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.strides() == other.strides() &&
         one.storage_offset() == other.storage_offset();
}

}  // namespace

at::Tensor Lending::Lend(const at::Tensor& tensor, bool written) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_cuda()) {
    host_arguments_.push_back(tensor);
    return tensor;
  }
  if (const auto known = tensor_by_original_.find(tensor.unsafeGetTensorImpl());
      known != tensor_by_original_.end()) {
    if (written && tensor.layout() == c10::kStrided) LendStorage(tensor, true);  // for its flag or hook
    return tensors_[known->second].second;
  }
  at::Tensor lent;
  if (tensor.layout() == c10::kSparse) {
    lent = LendSparse(tensor, written);
  } else if (at::sparse_csr::is_sparse_compressed(tensor)) {
    lent = LendCompressed(tensor, written);
  } else {
    lent = Shaped(LendStorage(tensor, written).lent, c10::DispatchKey::CPU, tensor);
  }
  tensor_by_original_[tensor.unsafeGetTensorImpl()] = tensor_by_lent_[lent.unsafeGetTensorImpl()] =
      tensors_.size();
  tensors_.emplace_back(tensor, lent);
  return lent;
}

Lending::LentStorage& Lending::LendStorage(const at::Tensor& tensor, bool written) {
  const c10::Storage& storage = tensor.storage();
  void* bytes = nullptr;
  if (announced_) {
    bytes = BytesOf(storage);
  } else if (storage.nbytes() > 0 || written) {
    bytes = written ? storage.mutable_data() : const_cast<void*>(storage.data());
  }
  AddBytes(tensor, written, accesses_);
  const auto known = storage_by_original_.find(storage.unsafeGetStorageImpl());
  if (known != storage_by_original_.end()) return storages_[known->second];
  auto lent = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                                    c10::DataPtr(bytes, c10::Device(c10::kCPU)),
                                                    c10::GetCPUAllocator(), /*resizable=*/true);
  storage_by_original_[storage.unsafeGetStorageImpl()] = storage_by_lent_[lent.get()] = storages_.size();
  return storages_.emplace_back(LentStorage{storage, c10::Storage(std::move(lent)), bytes, storage.nbytes()});
}

at::Tensor Lending::LendSparse(const at::Tensor& tensor, bool written) {
  const at::Tensor indices = Lend(tensor._indices(), written);
  const at::Tensor values = Lend(tensor._values(), written);
  return at::_sparse_coo_tensor_unsafe(indices, values, tensor.sizes(), values.options().layout(c10::kSparse),
                                       tensor.is_coalesced());
}

at::Tensor Lending::LendCompressed(const at::Tensor& tensor, bool written) {
  const auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(tensor);
  const at::Tensor values = Lend(tensor.values(), written);
  return at::_sparse_compressed_tensor_unsafe(Lend(compressed, written), Lend(plain, written), values,
                                              tensor.sizes(), values.options().layout(tensor.layout()));
}

void Lending::RunsNow(const WeirEmulatedWork* work) { Run(accesses_.data(), accesses_.size(), work); }

void Lending::Run(const WeirEmulatedAccess* accesses, size_t count, const WeirEmulatedWork* work) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      Host().run_now(CurrentStream(), op_, accesses, count, work) == 0, "emulated GPU: ", op_,
      " cannot be captured with kernels cpu, where operators run when they are called; "
      "WEIR_KERNELS=none captures them");
}

void Lending::Settle() { Host().settle(CurrentStream()); }

void Lending::WritesNow(const c10::Storage& storage, size_t size) {
  if (announced_) {
    Settle();
    return;
  }
  const WeirEmulatedAccess access{
      reinterpret_cast<uintptr_t>(BytesOf(storage)), size, WEIR_EMULATED_WRITE, 0, 1, 0, 1};
  const WeirEmulatedWork work{moves_ * static_cast<double>(size), 0, WEIR_EMULATED_FP32};
  Run(&access, 1, &work);
}

// The kernel gave the lent storage other bytes: out= tensors that were too small.
void Lending::TakeBackStorage(LentStorage& storage) {
  void* bytes = BytesOf(storage.lent);
  const size_t size = storage.lent.nbytes();
  if (bytes == storage.bytes && size <= storage.size) return;
  at::Tensor whole = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage.original),
                                                              c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                                              caffe2::TypeMeta::Make<uint8_t>());
  whole.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(storage.original.nbytes())});
  whole.resize_({static_cast<int64_t>(size)});  // CUDA's own resize_: grows the storage through its allocator
  void* grown = announced_ ? BytesOf(storage.original) : storage.original.mutable_data();
  WritesNow(storage.original, size);
  std::memcpy(grown, bytes, size);
}

void Lending::TakeBackArguments() {
  for (LentStorage& storage : storages_) TakeBackStorage(storage);
  for (const auto& [original, lent] : tensors_) {
    if (original.layout() == c10::kSparse) {
      TakeBackSparse(original, lent);
    } else if (original.layout() == c10::kStrided && !SameShape(original, lent)) {
      original.unsafeGetTensorImpl()->set_sizes_and_strides(lent.sizes(), lent.strides(),
                                                            lent.storage_offset());
    }
  }
}

void Lending::TakeBackSparse(const at::Tensor& original, const at::Tensor& lent) {
  const auto* before = SparseImpl(original);
  const auto* after = SparseImpl(lent);
  const at::Tensor* indices = OriginalOf(after->indices());
  const at::Tensor* values = OriginalOf(after->values());
  const bool same = indices != nullptr && indices->is_same(before->indices()) && values != nullptr &&
                    values->is_same(before->values());
  if (!same) {
    const at::Tensor new_indices = TakeResult(after->indices()), new_values = TakeResult(after->values());
    auto* impl = SparseImpl(original);
    impl->raw_resize_(after->sparse_dim(), after->dense_dim(), lent.sizes());
    impl->set_indices_and_values_unsafe(new_indices, new_values);
  }
  SparseImpl(original)->set_coalesced(after->coalesced());
}

const at::Tensor* Lending::OriginalOf(const at::Tensor& lent) const {
  const auto known = tensor_by_lent_.find(lent.unsafeGetTensorImpl());
  if (known != tensor_by_lent_.end()) return &tensors_[known->second].first;
  return nullptr;
}

void Lending::NoteResult(const at::Tensor& result) {
  if (!result.defined() || !result.is_cpu() || result.layout() != c10::kStrided) return;
  c10::StorageImpl* host = result.storage().unsafeGetStorageImpl();
  for (NewStorage& known : new_storages_) {
    if (known.host != host) continue;
    ++known.uses;
    return;
  }
  new_storages_.push_back({host, 1, c10::Storage()});
}

at::Tensor Lending::ViewOf(const c10::Storage& storage, const at::Tensor& like) {
  return Shaped(storage, c10::DispatchKey::CUDA, like);
}

at::Tensor Lending::TakeResult(const at::Tensor& result) {
  if (!result.defined() || !result.is_cpu()) return result;
  if (const at::Tensor* original = OriginalOf(result)) return *original;
  for (const at::Tensor& argument : host_arguments_) {
    if (argument.is_same(result)) return result;
  }
  if (result.layout() != c10::kStrided) return TakeSparse(result);
  const auto known = storage_by_lent_.find(result.storage().unsafeGetStorageImpl());
  if (known != storage_by_lent_.end()) return ViewOf(storages_[known->second].original, result);
  return TakeNew(result);
}

at::Tensor Lending::TakeNew(const at::Tensor& result) {
  const auto options = result.options().device(CurrentDevice());
  for (NewStorage& shared : new_storages_) {
    if (shared.host != result.storage().unsafeGetStorageImpl() || shared.uses == 1) continue;
    const size_t size = shared.host->nbytes();
    if (!shared.device) {
      const at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, options.dtype(c10::kByte));
      if (size > 0) {
        WritesNow(bytes.storage(), size);
        std::memcpy(BytesOf(bytes.storage()), BytesOf(result.storage()), size);
      }
      shared.device = bytes.storage();
    }
    return ViewOf(shared.device, result);
  }
  at::Tensor taken = at::empty_strided(result.sizes(), result.strides(), options);
  const size_t size = at::detail::computeStorageNbytes(result.sizes(), result.strides(), result.itemsize());
  const size_t skipped = static_cast<size_t>(result.storage_offset()) * result.itemsize();
  if (size > 0) {
    WritesNow(taken.storage(), size);
    std::memcpy(BytesOf(taken.storage()), static_cast<char*>(BytesOf(result.storage())) + skipped, size);
  }
  if (result.is_conj()) taken.unsafeGetTensorImpl()->_set_conj(true);
  if (result.is_neg()) taken.unsafeGetTensorImpl()->_set_neg(true);
  return taken;
}

at::Tensor Lending::TakeSparse(const at::Tensor& result) {
  const auto options = result.options().device(CurrentDevice());
  if (result.layout() == c10::kSparse) {
    return at::_sparse_coo_tensor_unsafe(TakeResult(result._indices()), TakeResult(result._values()),
                                         result.sizes(), options, result.is_coalesced());
  }
  const auto [compressed, plain] = at::sparse_csr::getCompressedPlainIndices(result);
  return at::_sparse_compressed_tensor_unsafe(TakeResult(compressed), TakeResult(plain),
                                              TakeResult(result.values()), result.sizes(), options);
}

}  // namespace weir::emulated
