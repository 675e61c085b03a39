"""What the tests of memory pools share: tensors of whole MiB with one value, and the job's own allocator."""
import ctypes
import os
import unittest

import torch

MIB = 1 << 20
CAP = 64 * MIB


def full(mib: int, value: float) -> torch.Tensor:
    return torch.full((mib * MIB // 4,), float(value), device="cuda")


class PoolTest(unittest.TestCase):
    def setUp(self):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def tearDown(self):
        self.assertLessEqual(torch.cuda.memory_stats()["reserved_bytes.all.peak"], CAP)

    def check(self, tensor, value):
        self.assertTrue(tensor.eq(value).all().item(), f"{value} expected, {tensor[:4].tolist()} found")

    def check_recorded_stream_defers_reuse(self, pool):
        side = torch.cuda.Stream()
        with torch.cuda.use_mem_pool(pool):
            x = full(8, 1)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                sums = [x.sum() for _ in range(50)]
            x.record_stream(side)
            del x
            y = full(8, 2)
        self.check(y, 2)
        side.synchronize()
        self.assertEqual([s.item() for s in sums], [2.0 * MIB] * 50)


class OtherAllocator:
    """tests/memory_pools/other_allocator.c, and how often it was called."""

    def __init__(self):
        path = os.environ["TEST_OTHER_ALLOCATOR"]
        self._pluggable = torch.cuda.memory.CUDAPluggableAllocator(path, "other_malloc", "other_free")
        self._lib = ctypes.CDLL(path)
        self.before = {name: self.value(name) for name in ("allocations", "frees")}

    def allocator(self):
        return self._pluggable.allocator()

    def value(self, name) -> int:
        return ctypes.c_int64.in_dll(self._lib, "other_" + name).value

    def refuse(self, calls: int) -> None:
        ctypes.c_int64.in_dll(self._lib, "other_refuses").value = calls

    @property
    def allocations(self) -> int:
        return self.value("allocations") - self.before["allocations"]

    @property
    def frees(self) -> int:
        return self.value("frees") - self.before["frees"]

    @property
    def bytes(self) -> int:
        return self.value("bytes")
