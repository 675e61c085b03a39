"""torch.cuda.MemPool on Weir's blocks, under a cap of 64 MiB with kernels that compute: where memory goes, values, figures."""
import threading
import unittest

import torch
from torch.cuda import MemPool, use_mem_pool

from harness import CAP, MIB, PoolTest, full


class OwnPoolTest(PoolTest):
    def test_FreedInAPool_IsReusedByThatPoolAlone(self):
        pool, other = MemPool(), MemPool()
        for mib in (8, 2):
            with use_mem_pool(pool):
                x = full(mib, 1)
            address = x.untyped_storage().data_ptr()
            del x
            outside = full(mib, 2)
            with use_mem_pool(other):
                elsewhere = full(mib, 3)
            with use_mem_pool(pool):
                again = full(mib, 4)
            self.assertEqual(again.data_ptr(), address)
            self.assertNotEqual(outside.data_ptr(), address)
            self.assertNotEqual(elsewhere.data_ptr(), address)
            del outside, elsewhere, again

    def test_Ids_AreDistinct_AndUsesAreCounted(self):
        pool, other = MemPool(), MemPool()
        self.assertNotEqual(pool.id, other.id)
        self.assertEqual(pool.use_count(), 1)
        with use_mem_pool(pool):
            self.assertEqual(pool.use_count(), 2)
            with use_mem_pool(other), use_mem_pool(pool):
                self.assertEqual((pool.use_count(), other.use_count()), (3, 2))
        self.assertEqual((pool.use_count(), other.use_count()), (1, 1))

    # NCCL registers the segments that this gives: blocks of Weir's may leave them.
    def test_SnapshotOfThePool_IsRefusedByName(self):
        with self.assertRaisesRegex(NotImplementedError, "Weir does not support the snapshot of one memory pool"):
            MemPool().snapshot()

    # pytorch#161193: the inner of two open pools was ignored
    def test_Nested_TheInnerOneWins_AndTheOuterAfterIt(self):
        outer, inner = MemPool(), MemPool()
        addresses = {}
        for name, pool in (("outer", outer), ("inner", inner)):
            with use_mem_pool(pool):
                x = full(8, 0)
            addresses[name] = x.data_ptr()
            del x
        with use_mem_pool(outer):
            with use_mem_pool(inner):
                x = full(8, 1)
            y = full(8, 2)
        self.assertEqual([x.data_ptr(), y.data_ptr()], [addresses["inner"], addresses["outer"]])

    def test_BodyRaises_ThePoolIsClosed(self):
        pool = MemPool()
        with self.assertRaises(KeyError), use_mem_pool(pool):
            x = full(8, 0)
            raise KeyError
        address = x.data_ptr()
        del x
        self.assertEqual(pool.use_count(), 1)
        self.assertNotEqual(full(8, 0).data_ptr(), address)

    def test_UnknownPool_IsAnError(self):
        with self.assertRaisesRegex(RuntimeError, "not in use"):
            torch._C._cuda_endAllocateToPool(0, (0, 1 << 40))
        with self.assertRaisesRegex(RuntimeError, "does not exist"):
            torch._C._cuda_releasePool(0, (0, 1 << 40))

    # pytorch#167745: pools that end before their blocks
    def test_EndedInAnyOrder_BlocksOutliveThePool(self):
        pools = [MemPool() for _ in range(3)]
        kept = []
        for i, pool in enumerate(pools):
            with use_mem_pool(pool):
                kept.append(full(4, i))
                kept.append(torch.full((100,), float(i), device="cuda"))
        for i in (1, 2, 0):
            pools[i] = None
            for at, tensor in enumerate(kept):
                self.check(tensor, at // 2)
        before = torch.cuda.memory_allocated()
        address = kept[0].data_ptr()
        del tensor, kept[:2]
        self.assertEqual(before - torch.cuda.memory_allocated(), 4 * MIB + 512)
        self.assertEqual(full(4, 9).data_ptr(), address)  # of the general heap now

    def test_BeyondTheCap_PoolBlocksLeaveAndComeBack(self):
        pool = MemPool()
        with use_mem_pool(pool):
            inside = [full(8, i) for i in range(6)]
        outside = [full(8, 100 + i) for i in range(6)]
        self.assertGreater(torch.cuda.memory_allocated(), CAP)
        for i in range(6):
            self.check(inside[i], i)
            self.check(outside[i], 100 + i)
            inside[i].add_(1)
        pool = None
        for i in range(6):
            self.check(inside[i], i + 1)

    def test_FreedInAPool_NeededOutside_IsNoOutOfMemory(self):
        pool = MemPool()
        with use_mem_pool(pool):
            x = [full(8, i) for i in range(7)]
        del x
        self.check(full(48, 5), 5)

    def test_MadeAndDroppedManyTimes_HoldsNoMore(self):
        def use(i):
            pool = MemPool()
            with use_mem_pool(pool):
                large, small = full(8, i), torch.full((100,), float(i), device="cuda")
            self.check(large, i)
            self.check(small, i)
        use(0)
        use(1)
        held, made = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
        for i in range(100):
            use(i)
        self.assertEqual((torch.cuda.memory_reserved(), torch.cuda.memory_allocated()), (held, made))

    def test_Figures_CountPoolBlocks(self):
        pool = MemPool()
        before = torch.cuda.memory_stats()
        with use_mem_pool(pool):
            x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
            y = torch.empty(1000, dtype=torch.uint8, device="cuda")
        after = torch.cuda.memory_stats()
        grown = {key: after[key] - before[key] for key in after}
        self.assertEqual(grown["allocation.all.current"], 2)
        self.assertEqual(grown["requested_bytes.all.current"], x.nbytes + y.nbytes)
        self.assertEqual(grown["allocated_bytes.small_pool.current"], 1024)

    def test_NoSplit_SmallTensorsShareNoPage(self):
        pool = MemPool(no_split=True)
        with use_mem_pool(pool):
            x, y = torch.ones(10, device="cuda"), torch.ones(10, device="cuda")
        self.assertGreaterEqual(abs(x.data_ptr() - y.data_ptr()), 2 * MIB)
        self.assertEqual((x + y).sum().item(), 20)

    def test_UseOnOom_IsAccepted(self):
        pool = MemPool(use_on_oom=True)
        with use_mem_pool(pool):
            x = [full(8, i) for i in range(7)]
        del x
        self.check(full(48, 5), 5)

    def test_WeirsOwnAllocatorInside_IsWeirsPool(self):
        pool = MemPool(torch.cuda.memory._get_current_allocator().allocator())
        with use_mem_pool(pool):
            inside = [full(8, i) for i in range(10)]
        for i, x in enumerate(inside):
            self.check(x, i)

    def test_TwoThreads_EachHasItsPool(self):
        def work(name, value):
            with torch.cuda.stream(torch.cuda.Stream()), use_mem_pool(pools[name]):
                barrier.wait()
                for _ in range(20):
                    x = full(8, value)
                    right[name].append(x.eq(value).all().item())
                    addresses[name].add(x.data_ptr())
                    del x
        barrier = threading.Barrier(2)
        pools = {"a": MemPool(), "b": MemPool()}
        right, addresses = {"a": [], "b": []}, {"a": set(), "b": set()}
        threads = [threading.Thread(target=work, args=(name, value)) for name, value in (("a", 1), ("b", 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, {"a": [True] * 20, "b": [True] * 20})
        self.assertEqual(addresses["a"] & addresses["b"], set())

    def test_OtherThread_IsNotRouted(self):
        pool = MemPool()
        with use_mem_pool(pool):
            x = full(8, 1)
            address = x.data_ptr()
            del x
            made = []
            thread = threading.Thread(target=lambda: made.append(full(8, 2).data_ptr()))
            thread.start()
            thread.join()
            self.assertNotEqual(made, [address])
            self.assertEqual(full(8, 3).data_ptr(), address)

    def test_OneThreadEndsWhileAnotherUsesTheSamePool_OnlyItsOwnUseEnds(self):
        pool = MemPool()
        opened, closed = threading.Event(), threading.Event()

        def work():
            with use_mem_pool(pool):
                opened.set()
                closed.wait()
                x = full(8, 1)
                found.append(x.data_ptr())
        found = []
        with use_mem_pool(pool):
            x = full(8, 1)
        address = x.data_ptr()
        del x
        torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool.id)
        thread = threading.Thread(target=work)
        thread.start()
        opened.wait()
        torch._C._cuda_endAllocateToPool(0, pool.id)
        torch._C._cuda_releasePool(0, pool.id)
        closed.set()
        thread.join()
        self.assertEqual(found, [address])

    def test_RecordStream_DefersReuseInThePool(self):
        self.check_recorded_stream_defers_reuse(MemPool())

    def test_Backward_OfTensorsInAPool(self):
        pool = MemPool()
        weight = full(8, 3).requires_grad_()
        with use_mem_pool(pool):
            loss = sum((weight * i).sum() for i in range(1, 6))
            loss.backward()
        self.check(weight.grad, 15)

    def test_GraphCapture_IsRefusedByName(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            with self.assertRaisesRegex(NotImplementedError, "CUDA graphs"):
                torch.cuda.CUDAGraph().capture_begin()
            with self.assertRaisesRegex(NotImplementedError, "CUDA graphs"):
                torch.cuda.CUDAGraph().capture_begin(MemPool().id)
        self.check(full(8, 1), 1)


if __name__ == "__main__":
    unittest.main()
