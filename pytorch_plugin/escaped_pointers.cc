#include "pytorch_plugin/escaped_pointers.h"

#include <algorithm>
#include <cstring>

#include "allocator/base/safeguards.h"
#include "pytorch_plugin/core_abi.h"
#include "pytorch_plugin/storage_flags.h"
#include "pytorch_plugin/streams.h"
#include "pytorch_plugin/torch_version.h"

namespace {

c10::StorageImpl* Impl(void* storage) { return static_cast<c10::StorageImpl*>(storage); }

void* BaseOf(void* storage) { return Impl(storage)->_mutable_data_ptr_no_checks().get(); }

void* StreamOf(void* storage) { return weir::plugin::CurrentStream(Impl(storage)->device().index()); }

int Fail(const WeirError& error, char* text, size_t size) {
  const size_t length = std::min(std::strlen(error.text), size - 1);
  std::memcpy(text, error.text, length);
  text[length] = 0;
  return 1;
}

}  // namespace

int weir_plugin_pin(void* storage, char* text, size_t size) {
  WeirError error;
  if (weir::Without(weir::Safeguard::kEscapedStay)) {  // brought back all the same
    const int held = weir_plugin_hold(storage, text, size);
    if (held == 0) weir_plugin_let_go();
    return held;
  }
  if (BaseOf(storage) == nullptr) return 0;
  if (weir_pin_escaped(BaseOf(storage), StreamOf(storage), &error) != WEIR_OK) return Fail(error, text, size);
  weir::plugin::StorageAllow(storage);
  return 0;
}

uintptr_t weir_plugin_address(void* storage) {
  c10::StorageImpl* impl = Impl(storage);
  const bool plain = !weir::plugin::Throws(*impl) || weir::plugin::DeniedByUs(impl);
  return plain ? reinterpret_cast<uintptr_t>(BaseOf(storage)) : 0;
}

int weir_plugin_hold(void* storage, char* text, size_t size) {
  WeirError error;
  weir_op_enter("UntypedStorage access");
  if (BaseOf(storage) == nullptr || weir::Without(weir::Safeguard::kStorageAccessHeld)) return 0;
  const WeirTouch touch{BaseOf(storage), weir::plugin::IsManaged(Impl(storage)) ? storage : nullptr, 1, 0};
  if (weir_touch(&touch, 1, StreamOf(storage), &error) == WEIR_OK) {
    weir::plugin::StorageAllow(storage);
    return 0;
  }
  weir_op_leave();
  return Fail(error, text, size);
}

void weir_plugin_let_go() { weir_op_leave(); }
