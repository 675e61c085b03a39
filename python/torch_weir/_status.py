"""Whether Weir is in place, and how it came there."""
from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata

from torch_weir import _loader, _places


@dataclass(frozen=True)
class Status:
    in_place: bool  # Weir is torch's allocator
    way: str        # "LD_PRELOAD", "entry point", "install()", "CUDAPluggableAllocator"; "" where it was not brought in
    reason: str     # why it is not in place; "" if it is
    version: str    # of this package
    torch: tuple[str, ...]  # the minors of torch that this package has plugins for
    vram: str       # WEIR_VRAM as it stands in the environment; "auto" where it is not set

    def __str__(self) -> str:
        where = f"in place by {self.way}, WEIR_VRAM={self.vram}" if self.in_place else f"not in place: {self.reason}"
        return f"Weir {self.version}: {where}"


def _way() -> str:
    if any(os.path.basename(entry) == _places.LOADER.name for entry in
           os.environ.get("LD_PRELOAD", "").replace(":", " ").split()):
        return "LD_PRELOAD"
    return _loader.opened_by or "CUDAPluggableAllocator"


def status() -> Status:
    loader = _loader.loaded()
    state = _loader.NOT_ASKED if loader is None else _loader.installed(loader)
    reasons = {_loader.IN_PLACE: "", _loader.REFUSED: "it was asked for and could not be (stderr says why)",
               _loader.NOT_ASKED: "nothing has used CUDA yet" if loader else "nothing has asked for it"}
    if state != _loader.IN_PLACE and os.environ.get("WEIR_DISABLE") == "1":
        reasons[state] = "WEIR_DISABLE=1"
    return Status(in_place=state == _loader.IN_PLACE, way=_way() if loader else "", reason=reasons[state],
                  version=metadata.version("torch-weir"), torch=tuple(_places.torch_minors()),
                  vram=os.environ.get("WEIR_VRAM") or "auto")
