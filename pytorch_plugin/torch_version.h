// What differs between the torch minors that the plugin is built for. No other file here asks for the version.
//
// What a minor lacks is either declared here, so that the rest of the plugin compiles unchanged, or is a constant
// that the rest decides by. Any thread; the functions on storages want what storage_flags.h says.
#ifndef WEIR_PYTORCH_PLUGIN_TORCH_VERSION_H_
#define WEIR_PYTORCH_PLUGIN_TORCH_VERSION_H_

#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/headeronly/version.h>

#include <functional>

#define WEIR_TORCH_AT_LEAST(minor) \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))

namespace weir::plugin {

// R3. True: besides the ops that are seen, nothing may reach a tensor that leaves, so code that could has to be
// recognised (foreign_code.h), and what it was given stays.
inline constexpr bool kOnlyKnownConsumers = !WEIR_TORCH_AT_LEAST(12);

// Storages have a slot for a function that runs before a write (2.13).
inline constexpr bool kHasMaterializer = WEIR_TORCH_AT_LEAST(13);

// ---- the throwing flag of a storage

#if WEIR_TORCH_AT_LEAST(14)

inline bool Throws(const c10::StorageImpl& storage) { return storage.throw_on_immutable_data_ptr(); }
inline bool ThrowsOnWrite(const c10::StorageImpl& storage) { return storage.throw_on_mutable_data_ptr(); }

#else

// Earlier ones set the flag and have no function that reads it. An explicit instantiation may name private members; the
// layout is this minor's for certain, since the plugin refuses every other one.
template <typename Tag, typename Tag::Member member>
struct PrivateMember {
  friend constexpr typename Tag::Member Reach(Tag) { return member; }
};
struct ThrowsFlag {
  using Member = bool c10::StorageImpl::*;
  friend constexpr Member Reach(ThrowsFlag);
};
struct ThrowsOnWriteFlag {
  using Member = bool c10::StorageImpl::*;
  friend constexpr Member Reach(ThrowsOnWriteFlag);
};
struct RefreshChecks {
  using Member = void (c10::StorageImpl::*)();
  friend constexpr Member Reach(RefreshChecks);
};
template struct PrivateMember<ThrowsFlag, &c10::StorageImpl::throw_on_immutable_data_ptr_>;
template struct PrivateMember<ThrowsOnWriteFlag, &c10::StorageImpl::throw_on_mutable_data_ptr_>;
template struct PrivateMember<RefreshChecks, &c10::StorageImpl::refresh_has_data_ptr_check>;

inline bool Throws(const c10::StorageImpl& storage) { return storage.*Reach(ThrowsFlag{}); }
inline bool ThrowsOnWrite(const c10::StorageImpl& storage) { return storage.*Reach(ThrowsOnWriteFlag{}); }

#endif

#if WEIR_TORCH_AT_LEAST(12)

inline void ClearThrowing(c10::StorageImpl& storage) { storage.clear_data_ptr_access_error_msg_(); }

#else

inline void ClearThrowing(c10::StorageImpl& storage) {
  storage.*Reach(ThrowsFlag{}) = false;
  storage.get_extra_meta().custom_data_ptr_error_msg_.reset();
  (storage.*Reach(RefreshChecks{}))();
}

#endif

// ---- the hook before a write

#if WEIR_TORCH_AT_LEAST(13)

inline bool HasHook(const c10::StorageImpl& storage) { return storage.has_materializer(); }
inline void SetHook(c10::StorageImpl& storage, void (*hook)(c10::StorageImpl*)) {
  storage.set_materializer(hook);
}
inline void ClearHook(c10::StorageImpl& storage) { storage.clear_materializer(); }

#else

inline bool HasHook(const c10::StorageImpl&) { return false; }
inline void SetHook(c10::StorageImpl&, void (*)(c10::StorageImpl*)) {}
inline void ClearHook(c10::StorageImpl&) {}

#endif

// ---- the allocator's base class, with the virtual functions that later minors call

class AnyMinorAllocator : public c10::cuda::CUDACachingAllocator::CUDAAllocator {
#if !WEIR_TORCH_AT_LEAST(12)
 public:
  using OomRejectionObserver = std::function<void()>;
  virtual void attachOomRejectionObserver(OomRejectionObserver) = 0;
#else
 public:
  using OomRejectionObserver = c10::cuda::CUDACachingAllocator::OomRejectionObserver;
#endif
#if !WEIR_TORCH_AT_LEAST(13)
  virtual c10::DataPtr allocateWithAddress(size_t, void*) = 0;
#endif
};

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TORCH_VERSION_H_
