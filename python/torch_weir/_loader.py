"""The loader (libweir_preload.so), of which a process has one at most: preloaded by `weir run`, or opened here at the first use of
CUDA. Until then a process may fork, and its children get Weir when they use CUDA."""
from __future__ import annotations

import ctypes
import functools
import os
import sys

from torch_weir import _places

IN_PLACE, NOT_ASKED, REFUSED = 1, 0, -1  # what installed() returns, as weir_installed() of loader.c
_MARK = "WEIR_OPENED_TO_INSTALL"  # else the loader takes being opened for torch's CUDAPluggableAllocator

armed_by = ""  # who made Weir come in at the first use of CUDA: "entry point" or "install()"


def loaded() -> ctypes.CDLL | None:
    """The loader that this process has already, whoever brought it and from whichever build. Opens nothing."""
    try:
        return ctypes.CDLL(_places.LOADER.name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def installed() -> int:
    loader = loaded()
    if loader is None:
        return NOT_ASKED
    try:
        return int(loader.weir_installed())
    except AttributeError:  # an older one, which acts by itself at the first use of CUDA
        return IN_PLACE


def _open() -> ctypes.CDLL:
    os.environ[_MARK] = "1"
    try:
        return ctypes.CDLL(str(_places.LOADER))
    finally:
        del os.environ[_MARK]


def put_in_place() -> None:
    """Makes Weir torch's allocator now, with the options of the environment. Never raises: what is against it is said on stderr, in
    one line, by the plugin, the loader or here, and WEIR_REQUIRED=1 ends the process with exit code 4."""
    try:
        (loaded() or _open()).weir_install()
    except Exception as failure:
        print(f"weir: cannot be put in place: the job runs without Weir: {failure}", file=sys.stderr)
        if os.environ.get("WEIR_REQUIRED") == "1":
            sys.exit(4)  # kExitUnavailable; no Exception, so that whoever imports torch lets it through


def arm(who: str) -> None:
    """Weir comes in at the first use of CUDA in this process or in one forked from it: torch.cuda._lazy_init, to which each such use
    leads, calls torch._C._cuda_init once."""
    global armed_by
    import torch
    start_cuda = getattr(torch._C, "_cuda_init", None)
    if start_cuda is None:  # a CPU-only torch: the loader says so
        put_in_place()
        return

    @functools.wraps(start_cuda)
    def start_cuda_under_weir() -> None:
        torch._C._cuda_init = start_cuda
        put_in_place()
        start_cuda()

    armed_by = who
    torch._C._cuda_init = start_cuda_under_weir
