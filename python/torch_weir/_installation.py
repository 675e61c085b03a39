"""install(): Weir in a process that runs already."""
from __future__ import annotations

import os
import subprocess
import sys
import warnings

from torch_weir import _loader, _places, _status

_set_here: dict[str, str] = {}  # the variables that install() has set in this process


def _texts(vram: str | int | None, options: dict[str, str | int | bool]) -> dict[str, str]:
    """The WEIR_* variables that the arguments mean. Raises TypeError, ValueError in the words of `weir config`."""
    texts = {} if vram is None else {"WEIR_VRAM": str(vram)}
    for name, value in options.items():
        texts[f"WEIR_{name.upper()}"] = str(int(value)) if isinstance(value, bool) else str(value)
    if not texts:
        return texts
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("WEIR_", "LD_PRELOAD"))}
    for strict in (False, True):  # a wrong value, then a name that is no option
        done = subprocess.run([_places.COMMAND, "config"], env={**environment, **texts, **({"WEIR_STRICT": "1"} if strict else {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            kind = TypeError if strict else ValueError
            raise kind("torch_weir.install: " + done.stderr.strip().removeprefix("weir config: "))
    return texts


def _differing(texts: dict[str, str]) -> dict[str, str]:
    """Of these, what the environment says otherwise or not at all."""
    return {name: text for name, text in texts.items() if os.environ.get(name) != text}


def _warn(texts: dict[str, str]) -> None:
    """These were not set here and stay as they are. The line of install()'s caller is shown."""
    for name, text in texts.items():
        warnings.warn(f"torch_weir.install: {name}={os.environ.get(name) or '(default)'} of the environment holds, not {text}",
                      RuntimeWarning, stacklevel=5)


def _already_in_place(texts: dict[str, str]) -> None:
    differing = _differing(texts)
    if differing and _set_here:
        asked = ", ".join(f"{name}={text}" for name, text in differing.items())
        raise RuntimeError(f"Weir is in place with other options than {asked}. torch_weir.set(vram=...) changes the cap of a running "
                           f"job; all else is for its start")
    _warn(differing)


def _comes_in(texts: dict[str, str]) -> None:
    """Until it does, install() may be called again with other options."""
    differing = _differing(texts)
    ours = {name: text for name, text in differing.items() if name in _set_here or not os.environ.get(name)}
    os.environ.update(ours)
    _set_here.update(ours)
    if not _loader.armed_by and _loader.loaded() is None:  # a preloaded one acts by itself
        _loader.arm("install()")
    _warn({name: text for name, text in differing.items() if name not in ours})


def _require_room(torch_version: str) -> None:
    """Raises RuntimeError where Weir cannot become torch's allocator any more, or at all."""
    import torch
    known = ", ".join(_places.torch_minors())
    if torch.version.cuda is None:
        raise RuntimeError(f"this torch ({torch_version}) is a CPU-only build: install a CUDA build of torch {known}")
    if not _places.plugin(torch_version).exists():
        raise RuntimeError(f"torch {torch_version} is not known to this Weir, which has plugins for torch {known}: install one "
                           f"of these, or a torch-weir that knows it")
    if torch.cuda.is_initialized():
        raise RuntimeError("CUDA has started already in this process, and torch's allocator cannot be changed any more. Call "
                           "torch_weir.install() before anything uses CUDA (in a notebook: restart the kernel, then first), "
                           "or set WEIR_VRAM, or start the job with `weir run`")
    backend = torch.cuda.memory.get_allocator_backend()
    if backend != "native":
        way_out = "unset backend:cudaMallocAsync in PYTORCH_ALLOC_CONF" if backend == "cudaMallocAsync" else \
            "leave out its change_current_allocator"
        raise RuntimeError(f"torch has another allocator in place ({backend}), and there can be one only: {way_out}, or do "
                           f"without Weir")


def install(vram: str | int | None, options: dict[str, str | int | bool]) -> _status.Status:
    texts = _texts(vram, options)
    if os.environ.get("WEIR_DISABLE") == "1":
        return _status.status()
    try:
        import torch
    except ImportError as error:
        raise RuntimeError(f"there is no torch in this Python ({sys.executable}): {error}") from error
    if _loader.installed() == _loader.IN_PLACE:
        _already_in_place(texts)
    else:
        _require_room(torch.__version__)
        _comes_in(texts)
    return _status.status()
