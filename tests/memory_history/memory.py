"""What the tests of snapshots and histories share. They run under `weir run` with a cap of 64 MiB, on the emulated GPU."""
import collections
import unittest

import torch

CAP = 64 << 20
MIB = 1 << 20
# memory_history.h, kEvictedPool
EVICTED_POOL = ((1 << 63) - 1, (1 << 63) - 1)
memory = torch.cuda.memory


def tensor(size: int) -> torch.Tensor:
    """A tensor of that many bytes that may leave the card: it has been an op's argument."""
    made = torch.zeros(size, dtype=torch.uint8, device="cuda")
    made.add_(1)
    return made


def segment_of(snapshot: list, address: int) -> dict:
    found = [s for s in snapshot if s["address"] <= address < s["address"] + s["total_size"]]
    assert len(found) == 1, f"{len(found)} segments hold {address:#x}"
    return found[0]


def block_of(snapshot: list, address: int) -> dict:
    return next(b for b in segment_of(snapshot, address)["blocks"] if b["address"] == address)


def address_of(made: torch.Tensor) -> int:
    """Without the pointer's escape, after which the tensor would stay on the card for good."""
    return torch._C._to_dlpack and made.untyped_storage()._cdata and _address(made)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        memory._record_memory_history(None)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    tearDown = setUp
