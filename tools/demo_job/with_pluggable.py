"""Starts a script after torch's documented hook for another allocator: with_pluggable.py LIBRARY SCRIPT [ARGUMENT…]"""
import runpy
import sys

import torch

library, script = sys.argv[1:3]
allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "weir_malloc", "weir_free")
torch.cuda.memory.change_current_allocator(allocator)
sys.argv = sys.argv[2:]
runpy.run_path(script, run_name="__main__")
