"""Whether Weir is in place, and how it came there."""
from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import metadata

from torch_weir import _loader, _places


@dataclass(frozen=True)
class Status:
    in_place: bool  # Weir is torch's allocator
    way: str        # "LD_PRELOAD", "entry point", "install()", "CUDAPluggableAllocator"; "" where nothing has asked for it
    reason: str     # why it is not in place; "" if it is
    version: str    # of this package
    torch: tuple[str, ...]  # the minors of torch that this package has plugins for
    vram: str       # WEIR_VRAM as it stands in the environment; "auto" where it is not set

    def __str__(self) -> str:
        where = f"in place by {self.way}" if self.in_place else f"not in place: {self.reason}"
        return f"Weir {self.version}: {where}; WEIR_VRAM={self.vram}"


def _way() -> str:
    if _loader.armed_by:
        return _loader.armed_by
    if _loader.loaded() is None:
        return ""
    preloaded = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return "LD_PRELOAD" if any(os.path.basename(entry) == _places.LOADER.name for entry in preloaded) else "CUDAPluggableAllocator"


def _reason(state: int, way: str) -> str:
    if state == _loader.IN_PLACE:
        return ""
    if os.environ.get("WEIR_DISABLE") == "1":
        return "WEIR_DISABLE=1"
    if state == _loader.REFUSED:
        return "it was asked for and could not be, a line on stderr has said why"
    if way:
        return f"it comes in at the first use of CUDA ({way})"
    if "torch" in sys.modules and os.environ.get("WEIR_VRAM"):  # C124
        return "WEIR_VRAM was set after torch was imported, or TORCH_DEVICE_BACKEND_AUTOLOAD=0: call torch_weir.install()"
    return "nothing has asked for it"


def status() -> Status:
    state, way = _loader.installed(), _way()
    return Status(in_place=state == _loader.IN_PLACE, way=way, reason=_reason(state, way), version=metadata.version("torch-weir"),
                  torch=tuple(_places.torch_minors()), vram=os.environ.get("WEIR_VRAM") or "auto")
