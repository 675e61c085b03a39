"""torch.cuda.MemPool(allocator) with the job's own allocator, under a cap of 64 MiB: whose memory, how much, until when."""
import unittest

import torch
from torch.cuda import MemPool, use_mem_pool

from harness import CAP, MIB, OtherAllocator, PoolTest, full


class ForeignPoolTest(PoolTest):
    def setUp(self):
        super().setUp()
        self.other = OtherAllocator()

    def tearDown(self):
        torch.cuda.empty_cache()
        self.assertEqual(self.other.bytes, 0)
        super().tearDown()

    # pytorch#146431: blocks were freed by another allocator
    def test_Blocks_ComeFromTheAllocatorAndReturnToIt(self):
        pool = MemPool(self.other.allocator())
        with use_mem_pool(pool):
            x = full(8, 1)
        self.assertEqual((self.other.allocations, self.other.frees), (1, 0))
        self.check(x, 1)
        address = x.data_ptr()
        del x
        with use_mem_pool(pool):
            x = full(8, 2)
        self.assertEqual(x.data_ptr(), address)
        self.assertEqual((self.other.allocations, self.other.frees), (1, 0))
        del x
        del pool
        self.assertEqual((self.other.allocations, self.other.frees), (1, 1))

    def test_BlockOutlivesThePool_StaysUntilTheCacheIsEmptied(self):
        pool = MemPool(self.other.allocator())
        with use_mem_pool(pool):
            x = full(8, 1)
        del pool
        self.check(x, 1)
        del x
        self.assertEqual(self.other.frees, 0)
        torch.cuda.empty_cache()
        self.assertEqual(self.other.frees, 1)

    def test_UnderTheCap_WeirMakesRoomAndTheBytesCount(self):
        before = torch.cuda.memory_allocated()
        outside = [full(8, i) for i in range(8)]
        pool = MemPool(self.other.allocator())
        with use_mem_pool(pool):
            inside = [full(8, 100 + i) for i in range(3)]
        self.assertEqual(torch.cuda.memory_allocated() - before, 11 * 8 * MIB)
        self.assertEqual(self.other.bytes, 3 * 8 * MIB)
        for _ in range(2):
            for i, x in enumerate(outside):
                self.check(x, i)
            for i, x in enumerate(inside):
                self.check(x, 100 + i)
        self.assertLessEqual(torch.cuda.memory_reserved(), CAP)
        del x, inside, pool
        self.assertEqual(self.other.bytes, 0)

    def test_NoRoomUnderTheCap_OutOfMemoryAndNothingIsAsked(self):
        pool = MemPool(self.other.allocator())
        with use_mem_pool(pool):
            with self.assertRaises(torch.OutOfMemoryError):
                full(72, 1)
            self.assertEqual(self.other.allocations, 0)
            self.check(full(8, 2), 2)

    def test_AllocatorGivesNothing_OutOfMemoryAndNothingIsCounted(self):
        pool = MemPool(self.other.allocator())
        held = torch.cuda.memory_stats()["allocated_bytes.all.current"]
        self.other.refuse(2)
        with use_mem_pool(pool), self.assertRaises((torch.OutOfMemoryError, RuntimeError)):
            full(8, 1)
        self.other.refuse(0)
        self.assertEqual(torch.cuda.memory_stats()["allocated_bytes.all.current"], held)
        self.check(full(48, 1), 1)

    # pytorch#151487: which pools lend, and in which order
    def test_UseOnOom_LendsItsFreeMemoryOnlyIfAsked(self):
        for use_on_oom in (False, True):
            with self.subTest(use_on_oom=use_on_oom):
                pool = MemPool(self.other.allocator(), use_on_oom=use_on_oom)
                with use_mem_pool(pool):
                    x = full(40, 1)
                address = x.data_ptr()
                del x
                if use_on_oom:
                    y = full(36, 2)
                    self.assertEqual(y.data_ptr(), address)
                    self.check(y[:MIB], 2)
                    del y
                else:
                    with self.assertRaises(torch.OutOfMemoryError):
                        full(36, 2)
                del pool
                self.check(full(36, 3)[:MIB], 3)  # the pool is gone, and what it held

    def test_EndedPool_IsNeitherLentNorInTheWay(self):
        pool = MemPool(self.other.allocator(), use_on_oom=True)
        with use_mem_pool(pool):
            x = full(40, 1)
        del pool
        address = x.data_ptr()
        del x
        y = full(36, 2)
        self.assertNotEqual(y.data_ptr(), address)
        self.assertEqual(self.other.frees, 1)
        self.check(y[:MIB], 2)

    def test_RecordStream_DefersReuse(self):
        self.check_recorded_stream_defers_reuse(MemPool(self.other.allocator()))

    def test_Nested_OwnPoolInsideIt(self):
        pool, own = MemPool(self.other.allocator()), MemPool()
        with use_mem_pool(pool):
            with use_mem_pool(own):
                x = full(8, 1)
            self.assertEqual(self.other.allocations, 0)
            y = full(8, 2)
        self.assertEqual(self.other.allocations, 1)
        self.check(x, 1)
        self.check(y, 2)
        del y, pool


if __name__ == "__main__":
    unittest.main()
