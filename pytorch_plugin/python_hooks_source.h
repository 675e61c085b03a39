// The Python part of python_hooks.cc. Run once in __main__, leaves no name behind. It must not import torch
// (it may be running inside `import torch`) and must not fail the job.
#ifndef WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_SOURCE_H_
#define WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_SOURCE_H_

namespace weir::plugin {

// `pin(storage, text, size)` -> 0 or an error code with text; `address(storage)`; `hold(storage, ...)` and
// `let_go()` keep a storage's block resident in between; `reading(on)` brackets a profiler;
// `memory(device, free, total)` corrects what the driver says; `note_foreign(name)` or 0. A
// storage is its StorageImpl's address (`_cdata`).
inline constexpr char kPythonHooks[] = R"PY(
def _weir_install(pin_at, address_at, hold_at, let_go_at, reading_at, memory_at,
                  note_foreign_at):
    import ctypes, functools, sys
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "UntypedStorage") or hasattr(torch.UntypedStorage, "_weir"):
        return
    text_type = ctypes.c_char_p
    pin = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)(pin_at)
    address = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(address_at)
    hold = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)(hold_at)
    let_go = ctypes.CFUNCTYPE(None)(let_go_at)
    reading = ctypes.CFUNCTYPE(None, ctypes.c_int)(reading_at)
    size_pointer = ctypes.POINTER(ctypes.c_size_t)
    correct_memory = ctypes.CFUNCTYPE(None, ctypes.c_int, size_pointer, size_pointer)(memory_at)

    # Callers that compare addresses and never use them. Frames of torch.storage itself are looked through.
    identity_modules = ("torch.serialization", "safetensors", "huggingface_hub", "transformers", "accelerate",
                        "torch.nn.modules.rnn", "torch.distributed.fsdp", "torch.distributed.utils",
                        "torch.storage", "torch._tensor", "torch.cuda.memory")
    pointer_functions = ("__cuda_array_interface__", "__dlpack__")
    forwarding = ("data_ptr", "_data_ptr", "untyped_storage")

    def only_compares():
        frame = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__") == "torch.storage" \
                and frame.f_code.co_name in forwarding:
            frame = frame.f_back
        if frame is None or frame.f_code.co_name in pointer_functions:
            return False
        name = frame.f_globals.get("__name__") or ""
        return any(name == m or name.startswith(m + ".") for m in identity_modules)

    def checked(function, storage):
        text = ctypes.create_string_buffer(3072)
        if function(storage._cdata, text, len(text)) != 0:
            raise torch.OutOfMemoryError(text.value.decode("utf-8", "replace"))

    def storage_of(tensor):
        if tensor.device.type != "cuda" or not torch._C._has_storage(tensor):
            return None
        return torch._C.TensorBase.untyped_storage(tensor)

    tensor_data_ptr = torch.Tensor.data_ptr
    storage_data_ptr = torch.UntypedStorage.data_ptr

    @functools.wraps(tensor_data_ptr)
    def data_ptr(self):
        if torch._C.TensorBase.is_cuda.__get__(self):
            storage = storage_of(self)
            if storage is not None:
                if only_compares():
                    base = address(storage._cdata)
                    if base:
                        return base + self.storage_offset() * self.element_size() if self.numel() else 0
                else:
                    checked(pin, storage)
        return tensor_data_ptr(self)

    @functools.wraps(storage_data_ptr)
    def untyped_data_ptr(self):
        if self.device.type == "cuda":
            if only_compares():
                base = address(self._cdata)
                if base:
                    return base
            else:
                checked(pin, self)
        return storage_data_ptr(self)

    def held(original):
        @functools.wraps(original)
        def method(self, *args, **kwargs):
            holding = 0
            try:
                for storage in (self, *args):
                    if isinstance(storage, torch.UntypedStorage) and storage.device.type == "cuda":
                        checked(hold, storage)
                        holding += 1
                return original(self, *args, **kwargs)
            finally:
                for _ in range(holding):
                    let_go()
        return method

    def exported(original):
        @functools.wraps(original)
        def method(self, *args, **kwargs):
            if isinstance(self, torch.Tensor) and self.is_cuda:
                storage = storage_of(self)
                if storage is not None:
                    checked(pin, storage)
            return original(self, *args, **kwargs)
        return method

    def wrap(owner, name, replacement):
        try:
            setattr(owner, name, replacement)
        except (AttributeError, TypeError):
            pass

    # A profiler that records shapes or stacks reads the address of every tensor it meets, and never uses it.
    def profiler_starts(original):
        @functools.wraps(original)
        def start(*args, **kwargs):
            reading(1)
            try:
                return original(*args, **kwargs)
            except BaseException:
                reading(0)
                raise
        return start

    def profiler_ends(original):
        @functools.wraps(original)
        def end(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            finally:
                reading(0)
        return end

    profiler = sys.modules.get("torch._C._autograd")
    if profiler is not None and hasattr(profiler, "_profiler_enabled") and profiler._profiler_enabled():
        reading(1)
    for name, wrapper in (("_enable_profiler", profiler_starts), ("_disable_profiler", profiler_ends)):
        original = getattr(profiler, name, None)
        if original is not None:
            replacement = wrapper(original)
            for module in ("torch._C._autograd", "torch.autograd", "torch.autograd.profiler"):
                if getattr(sys.modules.get(module), name, None) is original:
                    wrap(sys.modules[module], name, replacement)

    # Where the runtime's call is not interposed: Weir came into the process after the runtime.
    def told(original):
        @functools.wraps(original)
        def mem_get_info(device=None):
            free, total = (ctypes.c_size_t(bytes) for bytes in original(device))
            index = torch.cuda._utils._get_device_index(device, optional=True)
            correct_memory(index, ctypes.byref(free), ctypes.byref(total))
            return free.value, total.value
        return mem_get_info

    memory = sys.modules.get("torch.cuda.memory")
    if memory is not None and hasattr(memory, "mem_get_info"):
        wrap(memory, "mem_get_info", told(memory.mem_get_info))
        wrap(sys.modules["torch.cuda"], "mem_get_info", memory.mem_get_info)
    wrap(torch.Tensor, "data_ptr", data_ptr)
    wrap(torch.UntypedStorage, "data_ptr", untyped_data_ptr)
    for name in ("resize_", "copy_", "fill_", "__getitem__", "__setitem__", "_write_file", "_set_from_file",
                 "_share_cuda_"):
        wrap(torch.UntypedStorage, name, held(getattr(torch.UntypedStorage, name)))
    wrap(torch.Tensor, "__dlpack__", exported(torch.Tensor.__dlpack__))
    wrap(torch._C, "_to_dlpack", exported(torch._C._to_dlpack))
    if "torch.utils.dlpack" in sys.modules:
        wrap(sys.modules["torch.utils.dlpack"], "to_dlpack", torch._C._to_dlpack)
    wrap(torch, "to_dlpack", torch._C._to_dlpack)
    torch.UntypedStorage._weir = True

    # R3, where it asks for it: compiled code is noticed when torch's compiler for it is imported.
    if note_foreign_at:
        note_foreign = ctypes.CFUNCTYPE(None, text_type)(note_foreign_at)
        compilers = ("torch._inductor.compile_fx", "torch._inductor.runtime.triton_heuristics")

        class Watch:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name in compilers:
                    note_foreign(name.encode())
                return None

        for name in compilers:
            if name in sys.modules:
                note_foreign(name.encode())
        sys.meta_path.insert(0, Watch)
)PY";

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_PYTHON_HOOKS_SOURCE_H_
