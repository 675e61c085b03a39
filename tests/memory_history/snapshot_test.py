"""torch.cuda.memory_snapshot() on Weir's own blocks: they tile their segments, and the sums are those of memory_stats."""
import collections
import unittest

import torch

from memory import CAP, EVICTED_POOL, LARGE, MIB, MemoryTest, address_of, block_of, evicted, made, segment_of


class SnapshotTest(MemoryTest):
    def check_sums(self) -> list:
        """C19: what the snapshot adds up to is what memory_stats says at the same moment."""
        segments, stats = torch.cuda.memory_snapshot(), torch.cuda.memory_stats()
        sums = collections.Counter()
        for segment in segments:
            at = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], at)
                at += block["size"]
            self.assertEqual(at, segment["address"] + segment["total_size"])
            active = [b for b in segment["blocks"] if b["state"].startswith("active_")]
            allocated = [b for b in active if b["state"] == "active_allocated"]
            self.assertEqual(segment["active_size"], sum(b["size"] for b in active))
            self.assertEqual(segment["allocated_size"], sum(b["size"] for b in allocated))
            self.assertEqual(segment["requested_size"], sum(b["requested_size"] for b in active))
            for pool in ("all", segment["segment_type"] + "_pool"):
                sums[f"allocation.{pool}.current"] += len(allocated)
                sums[f"allocated_bytes.{pool}.current"] += segment["allocated_size"]
                sums[f"active.{pool}.current"] += len(active)
                sums[f"active_bytes.{pool}.current"] += segment["active_size"]
                sums[f"requested_bytes.{pool}.current"] += segment["requested_size"]
                if not evicted(segment):
                    sums[f"reserved_bytes.{pool}.current"] += segment["total_size"]
                    sums[f"segment.{pool}.current"] += not segment["is_expandable"]
        del sums["reserved_bytes.large_pool.current"]  # memory_stats has the frames that lie idle in `all` alone
        self.assertEqual({name: stats[name] for name in sums}, dict(sums))
        self.assertEqual([s["address"] for s in segments], sorted(s["address"] for s in segments))
        return segments

    def test_Sums_OfEveryKindOfSegment_AreThoseOfMemoryStats(self):
        self.check_sums()
        small = [torch.empty(1000, device="cuda") for _ in range(5)]
        medium = [torch.empty(3 * MIB // 2, dtype=torch.uint8, device="cuda") for _ in range(3)]
        self.check_sums()
        del small[1], medium[1]  # holes
        large = [made(LARGE) for _ in range(6)]
        self.assertTrue(any(map(evicted, self.check_sums())))
        del large[3]
        self.check_sums()
        large[0].add_(1)
        self.check_sums()
        large[4].record_stream(torch.cuda.Stream())
        del large[4]  # but its bytes are in use
        self.assertGreater(torch.cuda.memory_stats()["active.all.current"], torch.cuda.memory_stats()["allocation.all.current"])
        self.check_sums()
        torch.cuda.synchronize()
        del small, medium, large
        torch.cuda.empty_cache()
        self.check_sums()

    def test_Block_Requested_SizesAsAskedFor(self):
        x = torch.empty(1000, dtype=torch.uint8, device="cuda")
        segments = torch.cuda.memory_snapshot()
        block = block_of(segments, address_of(x))
        self.assertEqual((block["requested_size"], block["size"], block["state"]), (1000, 1024, "active_allocated"))
        segment = segment_of(segments, address_of(x))
        self.assertEqual((segment["segment_type"], segment["device"], segment["stream"]), ("small", 0, 0))

    def test_Segment_OfAnotherStream_NamesIt(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.empty(LARGE, dtype=torch.uint8, device="cuda")
        self.assertEqual(segment_of(torch.cuda.memory_snapshot(), address_of(x))["stream"], stream.cuda_stream)

    def test_Evicted_AndFetched_ShownAsSuch(self):
        tensors = [made(LARGE) for _ in range(6)]
        segments = torch.cuda.memory_snapshot()
        gone = [evicted(segment_of(segments, address_of(t))) for t in tensors]
        self.assertEqual(gone, [True, True, False, False, False, False])  # least recently used first
        for tensor in tensors:
            self.assertEqual(block_of(segments, address_of(tensor))["state"], "active_allocated")
        self.assertLessEqual(sum(s["total_size"] for s in segments if not evicted(s)), CAP)
        self.assertEqual(len(torch.cuda.memory_snapshot(EVICTED_POOL)), 2)
        with self.assertRaises(NotImplementedError):  # of a MemPool: its blocks may leave
            torch.cuda.memory_snapshot((0, 77))
        tensors[0].add_(1)
        segments = torch.cuda.memory_snapshot()
        self.assertFalse(evicted(segment_of(segments, address_of(tensors[0]))))
        self.assertTrue(evicted(segment_of(segments, address_of(tensors[2]))))

    def test_RecordedStream_StillBehind_BlockAwaitsItsFree(self):
        x = made(LARGE)
        at = address_of(x)
        x.record_stream(torch.cuda.Stream())
        del x
        block = block_of(torch.cuda.memory_snapshot(), at)
        self.assertRegex(block["state"], "^active_(awaiting|pending)_free$")
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.assertFalse(any(s["address"] <= at < s["address"] + s["total_size"] for s in torch.cuda.memory_snapshot()))

    def test_Settings_OfTorch_AreTold(self):
        settings = torch.cuda.memory._snapshot()["allocator_settings"]
        self.assertFalse(settings["expandable_segments"])
        self.assertEqual(settings["max_split_size"], -1)  # torch's word for no limit


if __name__ == "__main__":
    unittest.main()
