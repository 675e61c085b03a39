"""The command `weir` of an installation: becomes the program that lies in the package."""
from __future__ import annotations

import os
import sys

from torch_weir import _places


def main() -> None:
    try:
        os.execv(_places.COMMAND, ["weir", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"weir: {_places.COMMAND} cannot be started ({error.strerror}): install torch-weir again")
