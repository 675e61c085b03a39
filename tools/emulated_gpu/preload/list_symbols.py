#!/usr/bin/env python3
"""Regenerates symbols.txt: every cudart, cuBLAS, cuBLASLt, cuDNN and CUPTI name that the libraries of torch's wheels leave undefined.

Usage: list_symbols.py TORCH_LIB_FOLDER... > symbols.txt     (needs `nm`; one folder for each torch minor that Weir is built for)
The list is checked in so that a build needs no torch wheel; a test compares it with the wheels in use.
"""
import pathlib
import re
import subprocess
import sys

LIBRARIES = ("libtorch_cpu", "libtorch_cuda", "libc10_cuda", "libtorch_python", "libtorch_cuda_linalg", "libtorch_nvshmem")
WANTED = re.compile(r"^(__cuda|cuda|cublas|cudnn|cupti)\w+$")


def undefined(library: pathlib.Path) -> set[str]:
    lines = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True)
    names = {line.split()[1].split("@")[0] for line in lines.stdout.splitlines()}
    return {name for name in names if WANTED.match(name)}


def main() -> None:
    names: set[str] = set()
    for folder in map(pathlib.Path, sys.argv[1:]):
        for library in LIBRARIES:
            names |= undefined(folder / f"{library}.so")
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main()
