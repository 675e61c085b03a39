"""The loader (libweir_preload.so), of which a process has one at most: preloaded by `weir run`, or opened here."""
from __future__ import annotations

import ctypes
import os

from torch_weir import _places

IN_PLACE, NOT_ASKED, REFUSED = 1, 0, -1  # what installed() returns, as weir_installed() of loader.c
_MARK = "WEIR_OPENED_TO_INSTALL"  # else the loader takes being opened for torch's CUDAPluggableAllocator

opened_by = ""  # who opened it here: "entry point" or "install()"


def loaded() -> ctypes.CDLL | None:
    """The loader that this process has already, whoever brought it and from whichever build. Opens nothing."""
    try:
        return ctypes.CDLL(_places.LOADER.name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def installed(loader: ctypes.CDLL) -> int:
    try:
        return int(loader.weir_installed())
    except AttributeError:  # an older one, which acts by itself at the first use of CUDA
        return IN_PLACE


def put_in_place(who: str) -> int:
    """Makes Weir torch's allocator now, with the options of the environment; torch has been imported. What the loader or the
    plugin has against it is said on stderr, in one line."""
    global opened_by
    loader = loaded()
    if loader is None:
        os.environ[_MARK] = "1"
        try:
            loader = ctypes.CDLL(str(_places.LOADER))
        finally:
            del os.environ[_MARK]
        opened_by = who
    return int(loader.weir_install())
