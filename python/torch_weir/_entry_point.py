"""What `import torch` does where WEIR_* variables are set: makes Weir come in at the first use of CUDA, if they ask for it. Never
raises, for torch would not be imported then."""
from __future__ import annotations

import os
import sys

from torch_weir import _loader

# These ask for an emulated GPU, or say how Weir speaks; any other asks for Weir, a misspelt one too (it is told then).
_SAYS_NOTHING = ("WEIR_GPU", "WEIR_KERNELS", "WEIR_BESIDE_REAL_GPU", "WEIR_LOG", "WEIR_NVTX", "WEIR_STRICT")


def asks_for_weir(environment: dict[str, str]) -> bool:
    if environment.get("WEIR_DISABLE") == "1":
        return False
    return any(text for name, text in environment.items() if name.startswith("WEIR_") and
               name not in _SAYS_NOTHING and not name.startswith("WEIR_EMULATED_") and name != "WEIR_DISABLE")


def run() -> None:
    try:
        # Preloaded, the loader acts by itself: the way of `weir run` stays as it is.
        if asks_for_weir(dict(os.environ)) and _loader.loaded() is None:
            _loader.arm("entry point")
    except Exception as failure:
        print(f"weir: the job runs without Weir: {failure}", file=sys.stderr)
