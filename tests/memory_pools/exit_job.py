"""Ends with pools, their allocator and their blocks still there, in the order and the way that the arguments say."""
import sys

import torch
from torch.cuda import MemPool, use_mem_pool

from harness import OtherAllocator, full

order, way = sys.argv[1:]
other = OtherAllocator()
if order == "own":
    kept = MemPool()
    use = use_mem_pool(kept)
    use.__enter__()  # never left
    block = full(8, 1)
else:
    pool = MemPool(other.allocator())
    with use_mem_pool(pool):
        block = full(8, 1)
    kept = (other, pool, block) if order == "allocator-first" else (block, pool, other)
    del other, pool
print(f"sum {full(8, 2).sum().item():.0f}", flush=True)
if way == "exception":
    raise KeyError("the job's own")
if way == "code":
    sys.exit(3)
