// What has to be wrapped in Python because no op and no hook announces it (R4, R5): data_ptr(), the exports
// that keep a raw pointer (DLPack, __cuda_array_interface__), UntypedStorage.resize_ and friends.
//
// Only when Python is in the process; its symbols are looked up, nothing is linked. Includes nothing of
// Python.
#ifndef WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_H_
#define WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_H_

namespace weir::plugin {

// Wraps, once. Takes the GIL; call it while holding nothing. Does nothing without Python or before `import
// torch`.
void InstallPythonHooks();

// WeirHost::wait_begin and wait_end: a wait for the GPU gives the GIL away if this thread has it.
void* ReleaseGil();
void RetakeGil(void* token);

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_H_
