"""torch.cuda.memory._record_memory_history on Weir's own blocks: which entries, in which order, with whose stack."""
import collections
import threading
import unittest

import torch

from memory import CAP, LARGE, MemoryTest, address_of, block_of, evicted, made, memory


def actions(trace: list) -> list:
    return [entry["action"] for entry in trace]


def files(entry: dict) -> set:
    return {frame["filename"].split("/")[-1] for frame in entry.get("frames", [])}


def allocate_here(size: int = 1000) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


class HistoryTest(MemoryTest):
    def test_Block_AllocatedAndFreed_ThreeEntriesWithStacks(self):
        keep = allocate_here()  # so that the slab stays
        self.record()
        x = allocate_here(777)
        at = address_of(x)
        del x
        trace = self.trace()
        self.assertEqual(actions(trace), ["alloc", "free_requested", "free_completed"])
        for entry in trace:
            self.assertEqual((entry["addr"], entry["size"], entry["stream"]), (at, 777, 0))
            self.assertIn("history_test.py", files(entry))
        self.assertIn("allocate_here", [frame["name"] for frame in trace[0]["frames"]])
        self.assertNotIn("allocate_here", [frame["name"] for frame in trace[1]["frames"]])  # of who freed it
        self.assertEqual(sorted(e["time_us"] for e in trace), [e["time_us"] for e in trace])
        del keep

    def test_LiveBlocks_InSnapshot_ShowWhoAllocated(self):
        self.record("state")
        x = allocate_here()
        for _ in range(2):  # while it is recorded, and after it
            block = block_of(torch.cuda.memory_snapshot(), address_of(x))
            self.assertIn("allocate_here", [frame["name"] for frame in block["frames"]])
            memory._record_memory_history(None)
        at = address_of(x)
        del x
        y = allocate_here()
        self.assertEqual(address_of(y), at)  # the address is the same, and nobody saw who took it
        self.assertEqual(block_of(torch.cuda.memory_snapshot(), at).get("frames", []), [])

    def test_Switch_OnAndOff_IsTold(self):
        enabled = torch._C._cuda_isHistoryEnabled
        self.assertFalse(enabled())
        self.record()
        self.assertTrue(enabled())
        memory._record_memory_history(None)
        self.assertFalse(enabled())
        x = allocate_here()
        self.assertEqual(self.trace(), [])
        del x

    def test_Context_ByLevel_StacksOfAllocationsAndFrees(self):
        def frame_counts(context):
            keep = allocate_here()
            self.record(context=context)
            x = allocate_here()
            shown = block_of(torch.cuda.memory_snapshot(), address_of(x))
            del x
            trace = self.trace()
            self.assertEqual(actions(trace), ["alloc", "free_requested", "free_completed"])
            del keep
            return [len(e.get("frames", [])) > 0 for e in [shown, *trace]]

        self.assertEqual(frame_counts(None), [False, False, False, False])
        self.assertEqual(frame_counts("state"), [True, False, False, False])
        self.assertEqual(frame_counts("alloc"), [True, True, True, True])  # a free shows who allocated
        self.assertEqual(frame_counts("all"), [True, True, True, True])

    def test_MaxEntries_More_OldestAreGone(self):
        keep = allocate_here()
        self.record(max_entries=4)
        for size in (100, 200, 300):
            x = allocate_here(size)
            del x
        self.assertEqual([(e["action"], e["size"]) for e in memory._snapshot()["device_traces"][0]],
                         [("free_completed", 200), ("alloc", 300), ("free_requested", 300), ("free_completed", 300)])
        memory._record_memory_history(max_entries=2)
        self.assertEqual(len(memory._snapshot()["device_traces"][0]), 2)
        del keep

    def test_SkipActions_Named_AreNotRecorded(self):
        keep = allocate_here()
        self.record(skip_actions=["free_requested", "alloc"])
        x = allocate_here()
        del x
        self.assertEqual(actions(memory._snapshot()["device_traces"][0]), ["free_completed"])
        with self.assertRaisesRegex(RuntimeError, "Unknown TraceEntry action: nonsense"):
            self.record(skip_actions=["nonsense"])
        del keep

    def test_RecordedStream_FreeCompleted_OnlyAfterItHasPassed(self):
        x = made(LARGE)
        self.record()
        x.record_stream(torch.cuda.Stream())
        del x
        self.assertEqual(actions(self.trace()), ["free_requested"])
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self.assertEqual(actions(self.trace()), ["free_requested", "free_completed", "segment_unmap"])

    def test_OutOfMemory_Raised_EntryAndObserver(self):
        self.record()
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(lambda *figures: seen.append((figures, actions(self.trace())[-1])))
        free = CAP - torch.cuda.memory_reserved()
        with self.assertRaises(torch.OutOfMemoryError):
            allocate_here(1 << 40)
        entry = next(e for e in self.trace() if e["action"] == "oom")
        self.assertEqual((entry["size"], entry["device_free"]), (1 << 40, free))
        self.assertIn("history_test.py", files(entry))
        self.assertEqual(seen, [((0, 1 << 40, CAP, free), "oom")])  # a dump in the observer has the entry

    def test_Eviction_AndFetch_AreSegmentsThatMove(self):
        self.record()
        tensors = [made(LARGE) for _ in range(5)]
        first = address_of(tensors[0])
        moves = [(e["action"], "ram" in e["user_metadata"]) for e in self.trace()
                 if e["addr"] == first and e["action"].startswith("segment")]
        self.assertEqual(moves, [("segment_map", False), ("segment_map", True), ("segment_unmap", False)])
        tensors[0].add_(1)
        moves = [(e["action"], "ram" in e["user_metadata"]) for e in self.trace()
                 if e["addr"] == first and e["action"].startswith("segment")]
        self.assertEqual(moves[3:], [("segment_map", False), ("segment_unmap", True)])

    def test_Metadata_OfThread_GoesWithEntries(self):
        set_metadata, get_metadata = torch._C._cuda_setMemoryMetadata, torch._C._cuda_getMemoryMetadata
        if hasattr(memory, "_memory_metadata_supported"):
            self.assertTrue(memory._memory_metadata_supported())
        keep = allocate_here()
        self.record()
        set_metadata("layer 3")
        self.assertEqual(get_metadata(), "layer 3")
        x = allocate_here(100)
        other = threading.Thread(target=lambda: allocate_here(200))
        other.start()
        other.join()
        set_metadata("")
        del x, keep
        notes = {(e["size"], e["action"]): e["user_metadata"] for e in self.trace()}
        self.assertEqual(notes[100, "alloc"], "layer 3")
        self.assertEqual((notes[200, "alloc"], notes[100, "free_requested"]), ("", ""))

    @unittest.skipUnless(hasattr(memory, "_annotate_tensor"), "torch 2.11 cannot annotate")
    def test_Annotation_OfALiveTensor_IsAnEntry(self):
        x = made(LARGE)
        self.record()
        memory._annotate_tensor(x, "never seen allocated")
        self.assertEqual(self.trace(), [])
        y = made(LARGE)
        memory._annotate_tensor(y[1:], "weights")
        entry = self.trace()[-1]
        self.assertEqual((entry["action"], entry["addr"], entry["size"], entry["user_metadata"]),
                         ("annotate", address_of(y), LARGE, "weights"))
        del x
        others = [made(LARGE) for _ in range(4)]
        segments = torch.cuda.memory_snapshot()
        self.assertTrue(any(map(evicted, segments)))
        self.assertEqual([b["address"] for s in segments if evicted(s) for b in s["blocks"]][:1], [address_of(y)])
        del others

    @unittest.skipUnless(hasattr(memory, "_allocation_traceback"), "torch 2.11 does not ask")
    def test_Traceback_OfAPointer_IsItsAllocation(self):
        self.record()
        x = allocate_here()
        self.assertIn("allocate_here", [f["name"] for f in memory._allocation_traceback(address_of(x))])
        self.assertIsNone(memory._allocation_traceback(address_of(x) + 1))
        memory._record_memory_history(None)
        at = address_of(x)
        del x
        y = allocate_here()
        self.assertEqual(address_of(y), at)
        self.assertIsNone(memory._allocation_traceback(at))

    def test_Ranges_OfTheJob_AreAnnotations(self):
        self.record(global_record_annotations=True)
        with torch.profiler.record_function("a range"):
            allocate_here()
        notes = memory._snapshot()["external_annotations"]
        self.assertEqual([(n["stage"], n["name"], n["device"]) for n in notes],
                         [("START", "a range", 0), ("END", "a range", 0)])

    def test_EmptyCache_Called_ItsStackIsInTheEntry(self):
        x = made(LARGE)
        del x
        self.record()
        torch.cuda.empty_cache()
        trace = self.trace()
        self.assertEqual(actions(trace), ["segment_unmap"])
        self.assertIn("empty_cache", [frame["name"] for frame in trace[0]["frames"]])

    def test_Threads_ReusingAddresses_EntriesAlternate(self):
        """C46: stacks are made and dropped while other threads hold the GIL and want the allocator's locks."""
        self.record(max_entries=100_000)

        def work():
            for i in range(60):
                tensors = [allocate_here(512 * (1 + (i + j) % 3)) for j in range(3)]
                if i % 10 == 0:
                    tensors.append(made(LARGE))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        by_address = collections.defaultdict(list)
        for entry in self.trace():
            if not entry["action"].startswith("segment"):
                by_address[entry["addr"]].append(entry["action"])
        self.assertEqual(sum(map(len, by_address.values())), 3 * 4 * (60 * 3 + 6))
        for sequence in by_address.values():
            self.assertEqual(sequence, ["alloc", "free_requested", "free_completed"] * (len(sequence) // 3))


if __name__ == "__main__":
    unittest.main()
