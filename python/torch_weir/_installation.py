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
    """Of these, what the environment says otherwise, or what is new while Weir is in place."""
    return {name: text for name, text in texts.items() if os.environ.get(name) != text}


def _already_in_place(texts: dict[str, str]) -> _status.Status:
    differing = _differing(texts)
    now = _status.status()
    if differing:
        asked = ", ".join(f"{name}={text}" for name, text in differing.items())
        if _set_here:
            raise RuntimeError(f"Weir is in place with other options than {asked}. torch_weir.set(vram=...) changes the cap of a "
                               f"running job; all else is for its start")
        warnings.warn(f"torch_weir.install: {asked} has no effect: {now}", RuntimeWarning, stacklevel=4)
    return now


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


def _put_in_place(texts: dict[str, str]) -> None:
    differing = _differing(texts)
    ours = {name: text for name, text in differing.items() if not os.environ.get(name)}
    before = {name: os.environ.pop(name) for name in ours if name in os.environ}  # empty is as good as not set
    os.environ.update(ours)
    if _loader.put_in_place("install()") != _loader.IN_PLACE:
        for name in ours:
            del os.environ[name]
        os.environ.update(before)
        raise RuntimeError("Weir could not be put in place, the line on stderr says why; torch's own allocator stays")
    _set_here.update(ours)
    for name in differing.keys() - ours.keys():
        warnings.warn(f"torch_weir.install: {name}={os.environ[name]} of the environment holds, not {differing[name]}", RuntimeWarning,
                      stacklevel=4)


def install(vram: str | int | None, options: dict[str, str | int | bool]) -> _status.Status:
    texts = _texts(vram, options)
    if os.environ.get("WEIR_DISABLE") == "1":
        return _status.status()
    try:
        import torch
    except ImportError as error:
        raise RuntimeError(f"there is no torch in this Python ({sys.executable}): {error}") from error
    loader = _loader.loaded()
    if loader is not None and _loader.installed(loader) == _loader.IN_PLACE:
        return _already_in_place(texts)
    _require_room(torch.__version__)
    _put_in_place(texts)
    return _status.status()
