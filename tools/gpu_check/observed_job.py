"""Runs a training script, with deterministic algorithms or with a digest of every result of every operator.

    observed_job.py [--deterministic] [--digests FILE] SCRIPT [ARGUMENT...]

The file of digests holds a line per operator: its number, its name and a digest of the bytes of its results, so that
two runs can be compared operator by operator. Results are read back at once, which slows the job down.
"""
import argparse
import ctypes
import hashlib
import runpy
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Their results are not defined: memory that nobody has written yet.
UNDEFINED = ("aten.empty", "aten.new_empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty_strided")


class Digests(TorchDispatchMode):
    def __init__(self, file):
        super().__init__()
        self._file, self._count = file, 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        results = function(*arguments, **(keywords or {}))
        name = str(function)
        if not name.startswith(UNDEFINED):
            digest = hashlib.sha256()
            # In place, lists of optimizer steps return nothing: what they wrote is among the arguments.
            seen = tree_leaves(results) if results is not None else tree_leaves((arguments, keywords))
            for tensor in seen:
                if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and not tensor.is_meta:
                    held = tensor.detach().cpu().contiguous()
                    digest.update(ctypes.string_at(held.data_ptr(), held.nbytes))
            self._file.write(f"{self._count} {name} {digest.hexdigest()[:16]}\n")
        self._count += 1
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--digests", metavar="FILE")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
    sys.argv = [options.script, *options.arguments]
    if not options.digests:
        runpy.run_path(options.script, run_name="__main__")
        return
    with open(options.digests, "w") as file, Digests(file):
        runpy.run_path(options.script, run_name="__main__")


if __name__ == "__main__":
    main()
