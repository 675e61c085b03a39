#include "pytorch_plugin/storage_flags.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/streams.h"
#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {
namespace {

using c10::StorageImpl;

// Every text we put into a storage starts like this; the core's texts do not have to.
constexpr char kMark[] = "weir: ";

std::atomic<c10::DeleterFnPtr> our_deleter{nullptr};
std::atomic<c10::DeleterFnPtr> pluggable_deleter{nullptr};

StorageImpl* Impl(void* storage) { return static_cast<StorageImpl*>(storage); }

void* BaseOf(StorageImpl* storage) { return storage->_mutable_data_ptr_no_checks().get(); }

void SetFlag(StorageImpl* storage, std::string text) {
  if (text.rfind("CUDA out of memory", 0) != 0 && text.rfind(kMark, 0) != 0) text.insert(0, kMark);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(text));
}

std::string TextOf(StorageImpl* storage) {
  return storage->get_extra_meta().custom_data_ptr_error_msg_.value_or(std::string());
}

// The materialize hook of a written storage that could not be made resident.
void ThrowPendingOom(StorageImpl*) {
  const std::string& text = Thread().oom;
  TORCH_CHECK_WITH(OutOfMemoryError, false,
                   text.empty() ? "CUDA out of memory. weir: a tensor could not be brought back" : text);
}

// A storage that is written for certain throws through its hook, resident or not: some kernels take the pointers of
// their results first. One that only may be written keeps the flag, for a read would not be stopped by a hook.
void Arm(ThreadState& thread, const WeirTouch& touch, bool hooked, const char* text) {
  StorageImpl* storage = Impl(touch.storage);
  if (storage == nullptr || HasHook(*storage)) return;
  // Not resident and yet not flagged: while a profiler reads addresses.
  const bool denied = Throws(*storage) || weir_is_resident(BaseOf(storage)) == 0;
  if (!hooked && !denied) return;
  StorageRetain(storage);
  ArmedStorage armed{storage, BaseOf(storage), kHasMaterializer && hooked, TextOf(storage)};
  if (armed.hooked) {
    ClearThrowing(*storage);
    SetHook(*storage, &ThrowPendingOom);
  } else {
    SetFlag(storage, text);
  }
  thread.armed.push_back(std::move(armed));
}

void Disarm(const ArmedStorage& armed) {
  StorageImpl* storage = Impl(armed.storage);
  if (armed.hooked) ClearHook(*storage);
  if (BaseOf(storage) == armed.base && !armed.denied.empty() && weir_is_resident(armed.base) == 0) {
    SetFlag(storage, armed.denied);
  } else {
    ClearThrowing(*storage);
  }
  StorageRelease(storage);
}

}  // namespace

void StorageRetain(void* storage) { c10::raw::weak_intrusive_ptr::incref(Impl(storage)); }

void StorageRelease(void* storage) { c10::raw::weak_intrusive_ptr::decref(Impl(storage)); }

void StorageDeny(void* storage, const void* base, const char* text) {
  if (BaseOf(Impl(storage)) != base || Without(Safeguard::kEvictedThrows)) return;
  SetFlag(Impl(storage), text);
}

void StorageAllow(void* storage) {
  if (DeniedByUs(Impl(storage))) ClearThrowing(*Impl(storage));
}

bool DeniedByUs(StorageImpl* storage) {
  if (!Throws(*storage)) return false;
  const std::string text = TextOf(storage);
  return text.rfind(kMark, 0) == 0 || text.rfind("CUDA out of memory", 0) == 0;
}

bool IsManaged(StorageImpl* storage) {
  c10::DataPtr& pointer = storage->_mutable_data_ptr_no_checks();
  const c10::DeleterFnPtr deleter = pointer.get_deleter();
  if (deleter == nullptr || pointer.get() != pointer.get_context()) return false;
  if (deleter != our_deleter.load(std::memory_order_relaxed) &&
      deleter != pluggable_deleter.load(std::memory_order_relaxed)) {
    return false;
  }
  if (HasHook(*storage) || ThrowsOnWrite(*storage)) return false;
  return !Throws(*storage) || DeniedByUs(storage);
}

void AcceptDeleter(c10::DeleterFnPtr deleter) {
  c10::DeleterFnPtr none = nullptr;
  if (our_deleter.compare_exchange_strong(none, deleter) || none == deleter) return;
  pluggable_deleter.store(deleter);
}

void ArmPendingOom(ThreadState& thread, const char* text) {
  if (thread.oom.empty()) {  // else an enclosing op has failed already, and it clears everything at its end
    CountPendingOoms(1);
    thread.oom_depth = thread.open.size();
  }
  thread.oom = text;
  for (size_t i = 0; i < thread.touches.size(); ++i) {
    const WeirTouch& touch = thread.touches[i];
    if (!Without(Safeguard::kPinsOfFailedTouch))
      weir_touch_if_resident(&touch, 1, CurrentStream(thread.devices[i]));
    Arm(thread, touch, thread.writes[i] == Write::kHooked, text);
  }
}

void DisarmPendingOom(ThreadState& thread) {
  for (const ArmedStorage& armed : thread.armed) Disarm(armed);
  thread.armed.clear();
  if (!thread.oom.empty()) CountPendingOoms(-1);
  thread.oom.clear();
}

}  // namespace weir::plugin
