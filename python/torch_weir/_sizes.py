"""Sizes as the options of Weir take them (allocator/base/size_text.h): 24GiB, 24G (= GiB), 24GB (10^9), 512MiB, bytes."""
from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MiB": 1 << 20, "G": 1 << 30, "GiB": 1 << 30,
          "T": 1 << 40, "TiB": 1 << 40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
EVERY = -1
_SMALLEST = 2 << 20  # kSmallestCap of allocator/base/option_table.cc


def size(text: str) -> int:
    """Bytes. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", text, re.ASCII)
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or ("." in found[1] and unit == 1):
        raise ValueError(f'"{text}" is not a size: give 24GiB, 24G (= GiB), 24GB (10^9), 512MiB, 512M or plain bytes')
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def caps(vram: str | int) -> dict[int, int]:
    """The cap in bytes by device; of every device under EVERY. Raises ValueError: a share, auto and off are for the start."""
    text = str(vram)
    by_device: dict[int, int] = {}
    for entry in text.split(",") if ":" in text else [f":{text}"]:
        device, _, limit = entry.partition(":")
        if device and not re.fullmatch(r"[0-9]+", device) or int(device or 0) in by_device or (not device and text != limit):
            raise ValueError(f'"{entry}" is not DEVICE:SIZE with each device once, such as 0:20GiB,1:40GiB')
        by_device[int(device) if device else EVERY] = size(limit)
    for bytes_ in by_device.values():
        if not _SMALLEST <= bytes_ < 1 << 64:
            raise ValueError(f'"{text}": a cap is at least 2MiB and less than 2^64 bytes')
    return by_device
