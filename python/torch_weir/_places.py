"""Where the parts of Weir are in an installation, and which torch they are for."""
from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
COMMAND = FOLDER / "bin" / "weir"
LIBRARIES = FOLDER / "lib"
LOADER = LIBRARIES / "libweir_preload.so"


def plugin(torch_version: str) -> Path:
    """The plugin for a torch ("2.15.0+cu130"); it may not be there."""
    major, minor = torch_version.split(".")[:2]
    return LIBRARIES / f"libweir_torch_{major}_{minor}.so"


def torch_minors() -> list[str]:
    """The minors of torch that have a plugin, such as "2.15", oldest first."""
    minors = [path.stem.removeprefix("libweir_torch_").split("_") for path in LIBRARIES.glob("libweir_torch_*.so")]
    return [".".join(parts) for parts in sorted(minors, key=lambda parts: [int(part) for part in parts])]
