"""What the tests of snapshots and histories share. They run under `weir run` with a cap of 64 MiB, on the emulated GPU."""
import unittest

import torch

CAP = 64 << 20
MIB = 1 << 20
LARGE = 16 * MIB  # four of these fill the card
EVICTED_POOL = (200, 200)  # memory_history.h, kEvictedPool
memory = torch.cuda.memory

# Called by a module of this name an address is only compared, so the tensor may still leave.
compared = {"__name__": "torch.serialization"}
exec("def address_of(tensor): return tensor.untyped_storage().data_ptr()", compared)
address_of = compared["address_of"]


def made(size: int) -> torch.Tensor:
    """A tensor of that many bytes that may leave the card: it has been an op's argument."""
    tensor = torch.zeros(size, dtype=torch.uint8, device="cuda")
    tensor.add_(1)
    return tensor


def evicted(segment: dict) -> bool:
    return segment["segment_pool_id"] == EVICTED_POOL


def segment_of(segments: list, address: int) -> dict:
    found = [s for s in segments if s["address"] <= address < s["address"] + s["total_size"]]
    assert len(found) == 1, f"{len(found)} segments hold {address:#x}"
    return found[0]


def block_of(segments: list, address: int) -> dict:
    return next(b for b in segment_of(segments, address)["blocks"] if b["address"] == address)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        memory._record_memory_history(None)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    tearDown = setUp

    def record(self, *arguments, **named):
        memory._record_memory_history(*arguments, clear_history=True, **named)

    def trace(self) -> list:
        """Of device 0, without the marks of earlier snapshots."""
        return [e for e in memory._snapshot()["device_traces"][0] if e["action"] != "snapshot"]
