"""Weir in a running Python process: an allocator for torch that keeps a job under a VRAM cap.

    import torch_weir
    torch_weir.install(vram="20GiB")        # before anything uses CUDA
    ...
    wandb.log(torch_weir.stats())

Not needed where a job is started by `weir run`, or where WEIR_VRAM is set (`import torch` then does the same by itself).
Importing this package imports neither torch nor anything of Weir's; each function does when it is called.
"""
import os

TYPE_CHECKING = False  # every `import torch` imports this file: it imports nothing that Python has not loaded already
if TYPE_CHECKING:
    from torch_weir._status import Status as Status

    __version__: str

__all__ = ["Status", "install", "path", "set", "stats", "status"]


def install(vram: str | int | None = None, **options: str | int | bool) -> "Status":
    """Puts Weir in the place of torch's allocator, at the first use of CUDA of this process or of one that it starts or forks.

    `vram` is the cap, as WEIR_VRAM takes it: "20GiB", "80%", "0:20GiB,1:40GiB", "auto", "off", or a number of bytes. Other
    options are those of `weir config` in small letters and without WEIR_: install(vram="20GiB", ram="64GiB", log="info").
    What the environment sets stays, with a warning where the argument differs: who starts a job has the last word.

    Call it before anything uses CUDA. Raises RuntimeError, naming the way out, if CUDA has started, if torch has another
    allocator, if this torch is not known to Weir or if Weir is in place with other options; ValueError or TypeError for an
    option that Weir refuses. Nothing has changed then. A second call with the same options does nothing.

    Returns what status() does: until CUDA is used, that Weir comes in then. What may still be against it at that moment (a
    card without virtual memory management, say) is one line on stderr, and the job goes on; with required=True it ends.
    """
    from torch_weir import _installation
    return _installation.install(vram, options)


def set(*, vram: str | int) -> None:  # noqa: A001: torch_weir.set(vram=...)
    """Changes the cap while the job runs. `vram` is a size ("20GiB", or bytes), for every device or per device
    ("0:20GiB,1:40GiB").

    Raises RuntimeError if Weir is not in place or the cap cannot hold, ValueError for what is no size, and
    NotImplementedError where this build of Weir cannot do it.
    """
    from torch_weir import _core
    _core.set_cap(vram)


def status() -> "Status":
    """Whether Weir is in place in this process, how it came there, and if not, why. Starts nothing."""
    from torch_weir import _status
    return _status.status()


def stats(device: int | None = None) -> dict[str, int]:
    """Figures of a device (the current one by default), flat, for W&B or TensorBoard. Starts nothing.

    `torch/...` are those of torch.cuda.memory_stats. `weir/...`, only where Weir is in place: cap, resident, peak_resident,
    floor, spilled_ram, evicted_bytes and fetched_bytes in bytes, evictions and fetches as counts. Empty before CUDA starts.
    """
    from torch_weir import _core
    return _core.stats(device)


def path() -> str:
    """The library for LD_PRELOAD or torch.cuda.memory.CUDAPluggableAllocator: what `weir path` prints."""
    from torch_weir import _places
    return str(_places.LOADER)


def _autoload() -> None:
    """Called by `import torch` (entry point torch.backends). With no WEIR_* variable it looks at nothing but their names."""
    if not any(name.startswith("WEIR_") for name in os.environ):
        return
    try:
        from torch_weir import _entry_point
    except Exception as failure:  # torch would not be imported
        os.write(2, f"weir: torch-weir is damaged, the job runs without Weir: {failure}\n".encode())
    else:
        _entry_point.run()


def __getattr__(name: str) -> object:
    if name == "Status":
        from torch_weir._status import Status
        return Status
    if name == "__version__":
        from importlib.metadata import version
        return version("torch-weir")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
