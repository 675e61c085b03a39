"""Figures and the cap of Weir's core (libweir_core.so), through its C ABI (pytorch_plugin/core_abi.h)."""
from __future__ import annotations

import ctypes
import os

from torch_weir import _sizes, _status

_OK = 0  # WEIR_OK
_OWN = ("cap", "resident", "peak_resident", "floor", "spilled_ram", "evictions", "evicted_bytes", "fetches", "fetched_bytes",
        "ops_observed", "watches")


class Stat(ctypes.Structure):  # WeirStat
    _fields_ = [(name, ctypes.c_int64) for name in ("current", "peak", "allocated", "freed")]


class DeviceStats(ctypes.Structure):  # WeirDeviceStats
    _fields_ = [
        *((name, Stat * 3) for name in ("allocation", "segment", "active", "inactive_split", "allocated_bytes",
                                        "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")),
        *((name, ctypes.c_int64) for name in ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                                              "num_device_free")),
        *((name, ctypes.c_uint64) for name in _OWN),
    ]


class Error(ctypes.Structure):  # WeirError
    _fields_ = [("code", ctypes.c_int32), ("text", ctypes.c_char * 3072)]


def loaded() -> ctypes.CDLL | None:
    """The core that this process has, if any. Opens nothing."""
    try:
        return ctypes.CDLL("libweir_core.so", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def _own_stats(device: int) -> dict[str, int]:
    core = loaded()
    if core is None:
        return {}
    # More room than the figures need: `weir run` may have brought the core of a later build, which knows more of them.
    room = ctypes.create_string_buffer(ctypes.sizeof(DeviceStats) + 4096)
    if core.weir_device_stats(ctypes.c_int32(device), room) == 0:
        return {}
    figures = DeviceStats.from_buffer(room)
    return {f"weir/{name}": int(getattr(figures, name)) for name in _OWN}


def stats(device: int | None) -> dict[str, int]:
    import torch
    if not torch.cuda.is_initialized():
        return {}
    if device is None:
        device = torch.cuda.current_device()
    try:
        figures = {f"torch/{name}": int(value) for name, value in torch.cuda.memory_stats(device).items()}
    except RuntimeError:  # torch's CUDAPluggableAllocator keeps none
        figures = {}
    return {**figures, **_own_stats(device)}


def set_cap(vram: str | int) -> None:
    caps = _sizes.caps(vram)
    core = loaded()
    if core is None:
        raise RuntimeError(f"there is no cap to change, Weir is not in place: {_status.status().reason}")
    try:
        set_one = core.weir_set_cap
    except AttributeError:
        raise NotImplementedError("torch_weir.set: this build of Weir has no weir_set_cap; the cap is what it was at the "
                                  "start (WEIR_VRAM, install(vram=...))") from None
    import torch
    if _sizes.EVERY in caps:
        caps = dict.fromkeys(range(torch.cuda.device_count()), caps[_sizes.EVERY])
    for device, cap in caps.items():
        error = Error()
        if set_one(ctypes.c_int32(device), ctypes.c_uint64(cap), ctypes.byref(error)) != _OK:
            raise RuntimeError(f"device {device}: {error.text.decode('utf-8', 'replace')}")
