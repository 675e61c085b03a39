#include "pytorch_plugin/touches.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include <utility>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/memory_history.h"
#include "pytorch_plugin/storage_flags.h"
#include "pytorch_plugin/streams.h"
#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {
namespace {

void AddStorage(ThreadState& thread, c10::StorageImpl* storage, Write write, bool evidence) {
  if (storage == nullptr) return;
  const c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
  if (pointer.get() == nullptr || !pointer.device().is_cuda()) return;
  if (Without(Safeguard::kAliasesTouched) && !IsManaged(storage)) return;
  thread.touches.push_back(
      WeirTouch{pointer.get(), IsManaged(storage) ? storage : nullptr, write != Write::kNever, evidence});
  thread.writes.push_back(write);
  thread.devices.push_back(pointer.device().index());
}

// Sparse tensors have no storage of their own; wrappers may claim a sparse layout without being one. The audited list
// speaks of dense arguments: what is inside any other always counts as written.
bool AddSparse(ThreadState& thread, c10::TensorImpl* impl, bool evidence) {
  const Write write = Without(Safeguard::kSparsePartsWritten) ? Write::kNever : Write::kMaybe;
  if (auto* coo = dynamic_cast<at::SparseTensorImpl*>(impl);
      coo != nullptr && !Without(Safeguard::kSparseUnwrapped)) {
    return CollectTouches(thread, coo->indices(), write, evidence) &&
           CollectTouches(thread, coo->values(), write, evidence);
  }
  if (auto* compressed = dynamic_cast<at::SparseCsrTensorImpl*>(impl);
      compressed != nullptr && !Without(Safeguard::kCompressedUnwrapped)) {
    return CollectTouches(thread, compressed->compressed_indices(), write, evidence) &&
           CollectTouches(thread, compressed->plain_indices(), write, evidence) &&
           CollectTouches(thread, compressed->values(), write, evidence);
  }
  return true;
}

void* StreamOfOp(int device) {
  return Without(Safeguard::kTouchOnStreamOfOp) ? nullptr : CurrentStream(device);
}

// Calls `touch(first, count, stream)` for each run of touches on one device.
template <typename Touch>
bool ForEachDevice(ThreadState& thread, Touch touch) {
  size_t first = 0;
  const size_t count = thread.touches.size();
  while (first < count) {
    size_t next = first + 1;
    for (size_t i = next; i < count; ++i) {  // bring the touches of the same device together
      if (thread.devices[i] != thread.devices[first]) continue;
      std::swap(thread.devices[i], thread.devices[next]);
      std::swap(thread.touches[i], thread.touches[next]);
      std::swap(thread.writes[i], thread.writes[next]);
      ++next;
    }
    if (!touch(&thread.touches[first], next - first, StreamOfOp(thread.devices[first]))) return false;
    first = next;
  }
  return true;
}

// A storage that got another block while it was denied (resize_) still carries the flag: resident means
// allowed.
void AllowStale(const WeirTouch* touches, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto* storage = static_cast<c10::StorageImpl*>(touches[i].storage);
    if (storage != nullptr && Throws(*storage)) StorageAllow(storage);
  }
}

}  // namespace

bool CollectTouches(ThreadState& thread, const at::Tensor& tensor, Write write, bool evidence) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!tensor.defined()) return true;
  if (impl->key_set().has(c10::DispatchKey::Python)) return false;
  if (impl->has_storage()) {
    const bool nested = tensor.is_nested() && !Without(Safeguard::kNestedTensorWritten);
    const Write known = nested ? Write::kMaybe : write;
    AddStorage(thread, impl->unsafe_storage().unsafeGetStorageImpl(), known, evidence);
    return true;
  }
  const c10::Layout layout = impl->layout();
  return layout == c10::kStrided || AddSparse(thread, impl, evidence);
}

bool CollectTouches(ThreadState& thread, const c10::IValue& value, Write write, bool evidence) {
  if (value.isTensor()) return CollectTouches(thread, value.toTensor(), write, evidence);
  if (value.isStorage() && !Without(Safeguard::kStoragesTouched)) {
    AddStorage(thread, value.toStorage().unsafeGetStorageImpl(), write, evidence);
    return true;
  }
  if ((!value.isList() && !value.isTuple()) || Without(Safeguard::kListsUnwrapped)) return true;
  if (value.isIntList() || value.isDoubleList() || value.isBoolList()) return true;
  c10::ArrayRef<c10::IValue> elements =
      value.isList() ? value.toListRef() : c10::ArrayRef<c10::IValue>(value.toTupleRef().elements());
  for (const c10::IValue& element : elements) {
    if (!element.isTensor() && !element.isList() && !element.isTuple() && !element.isNone()) break;
    if (!CollectTouches(thread, element, write, evidence)) return false;
  }
  return true;
}

void ClearTouches(ThreadState& thread) {
  thread.touches.clear();
  thread.devices.clear();
  thread.writes.clear();
}

bool TouchCollected(ThreadState& thread, WeirError* error) {
  return ForEachDevice(thread, [error](const WeirTouch* touches, size_t count, void* stream) {
    if (weir_touch(touches, count, stream, error) != WEIR_OK) return false;
    AllowStale(touches, count);
    if (Watched()) TakeEvents();  // of what was fetched, and of what had to leave for it
    return true;
  });
}

bool TouchCollectedIfResident(ThreadState& thread) {
  return ForEachDevice(thread, [](const WeirTouch* touches, size_t count, void* stream) {
    return weir_touch_if_resident(touches, count, stream) != 0;
  });
}

}  // namespace weir::plugin
