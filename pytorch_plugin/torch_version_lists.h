// torch_version.h for list ops: how torch decides a list's route, and which kernel an operator reaches.
#ifndef WEIR_PYTORCH_PLUGIN_TORCH_VERSION_LISTS_H_
#define WEIR_PYTORCH_PLUGIN_TORCH_VERSION_LISTS_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ForeachUtils.h>

#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {

#if WEIR_TORCH_AT_LEAST(14)

inline const c10::KernelFunction& KernelFor(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  return op.lookup(keys);
}

#else

struct OperatorDefinition {
  friend constexpr auto Reach(OperatorDefinition);
};
template <typename Tag, auto member>
struct PrivateMemberOfAnyType {
  friend constexpr auto Reach(Tag) { return member; }
};
template struct PrivateMemberOfAnyType<OperatorDefinition, &c10::OperatorHandle::operatorDef_>;

inline const c10::KernelFunction& KernelFor(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  return (op.*Reach(OperatorDefinition{}))->op.lookup(keys);
}

#endif

#if WEIR_TORCH_AT_LEAST(12)

// False: torch takes the slow kernel for these lists. `is_copy`: _foreach_copy_, whose lists may differ in type.
inline bool MayTakeFastRoute(at::ArrayRef<at::TensorList> lists, bool is_copy) {
  return at::native::check_fast_path_restrictions(lists, {}, false, is_copy);
}

#else

// 2.11 has no single check for copies; what both of its conditions leave open runs as one call.
inline bool MayTakeFastRoute(at::ArrayRef<at::TensorList> lists, bool is_copy) {
  if (!is_copy) return at::native::check_fast_path_restrictions(lists, {}, false);
  return at::native::_check_tensors_share_device_and_dtype(lists, true) &&
         at::native::_check_tensors_share_sizes_and_strides(lists);
}

#endif

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TORCH_VERSION_LISTS_H_
