// What the Python wrappers call. `storage` is the address of a c10::StorageImpl that Python holds; the thread
// does not need the GIL. Return 0, or 1 with `text` filled: it could not be brought back.
#ifndef WEIR_PYTORCH_PLUGIN_ESCAPED_POINTERS_H_
#define WEIR_PYTORCH_PLUGIN_ESCAPED_POINTERS_H_

#include <cstddef>
#include <cstdint>

extern "C" {
// A pointer into the storage leaves Weir's sight: resident and pinned from now on (R5).
int weir_plugin_pin(void* storage, char* text, size_t size);
// The storage's address without bringing it back, for callers that only compare it. 0: none.
uintptr_t weir_plugin_address(void* storage);
// Resident and pinned until weir_plugin_let_go, on the same thread. Nests. Nothing to let go after a failure.
int weir_plugin_hold(void* storage, char* text, size_t size);
void weir_plugin_let_go();
}

#endif  // WEIR_PYTORCH_PLUGIN_ESCAPED_POINTERS_H_
