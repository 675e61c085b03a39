#!/usr/bin/env python3
"""The virtual functions that torch's allocator interface has, read from its headers and held against a checked-in table.

A later torch may add a function that is not pure: the plugin then compiles, and torch calls a default that knows nothing of
Weir's blocks. So a build with other functions than the table's fails, and names them.

  allocator_methods.py INCLUDE TABLE           exit code 1 and one line for each difference
  allocator_methods.py INCLUDE TABLE --write   writes the table (a new minor; read what has changed first)
"""
import argparse
import pathlib
import re
import sys

# header: the classes in it that WeirAllocator derives from
CLASSES = {"c10/core/Allocator.h": ("Allocator",), "c10/core/CachingDeviceAllocator.h": ("DeviceAllocator",),
           "c10/cuda/CUDACachingAllocator.h": ("CUDAAllocator",)}


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def body_of(text: str, name: str) -> str:
    """What stands between the braces of the class."""
    start = re.search(rf"\b(?:class|struct)\s+(?:\w+\s+)?{name}\b[^;{{]*{{", text)
    if start is None:
        raise SystemExit(f"no class {name}: the headers of this torch are laid out in another way")
    depth, end = 1, start.end()
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start.end():end - 1]


def methods_of(body: str) -> list:
    """(declaration in one line, whether it is pure) of each virtual function; destructors are left out."""
    found = []
    for start in re.finditer(r"\bvirtual\b", body):
        depth, end, seen = 0, start.end(), False
        while depth > 0 or not seen or body[end] not in ";{":  # default arguments and parameters may have braces
            depth += {"(": 1, ")": -1}.get(body[end], 0)
            seen = seen or body[end] == "("
            end += 1
        text = " ".join(body[start.end():end].split())
        pure = re.search(r"=\s*0$", text) is not None
        text = re.sub(r"\s*=\s*(0|default)$", "", text)
        text = re.sub(r"\s*([(),<>&*{}=])\s*", r"\1", text)
        if "~" not in text:
            found.append((text, pure))
    return found


def table_of(include: pathlib.Path) -> list:
    lines = []
    for header, classes in CLASSES.items():
        text = without_comments((include / header).read_text())
        for name in classes:
            lines += [f"{name} {'pure' if pure else 'has-default'} {text}" for text, pure in methods_of(body_of(text, name))]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = table_of(options.include)
    if options.write:
        options.table.write_text("".join(f"{line}\n" for line in lines))
        return 0
    known = options.table.read_text().splitlines() if options.table.exists() else []
    differences = [f"new or changed: {line}" for line in lines if line not in known]
    differences += [f"gone or changed: {line}" for line in known if line not in lines]
    for line in differences:
        print(f"{options.table.name}: {line}", file=sys.stderr)
    if differences:
        print(f"torch's allocator interface is not the one that Weir was written for; see what Weir has to do for each, then\n"
              f"  {sys.argv[0]} {options.include} {options.table} --write", file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
