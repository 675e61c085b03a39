"""Trackers of allocator entries (tracker.cc): told of each, whether or not the history is on, in order, with no lock held."""
import ctypes
import os
import threading
import unittest

import torch

from memory import LARGE, MemoryTest, address_of, evicted, made

torch.zeros(1, device="cuda")
library = ctypes.CDLL(os.environ["TEST_TRACKER"])
library.tracker_attach()


def told() -> list:
    text = ctypes.create_string_buffer(1 << 22)
    library.tracker_take(text, len(text))
    return [line.split() for line in text.value.decode().splitlines()]


class TrackersTest(MemoryTest):
    def test_Entries_HistoryOff_AreTold(self):
        told()
        x = torch.empty(LARGE, dtype=torch.uint8, device="cuda")
        at = str(address_of(x))
        del x
        torch.cuda.empty_cache()
        entries = [(action, int(size)) for action, address, size in told() if address == at]
        self.assertEqual(entries, [("segment_map", LARGE), ("alloc", LARGE), ("free_requested", LARGE),
                                   ("free_completed", LARGE), ("segment_unmap", LARGE)])

    def test_Eviction_TellsOnlyOfRangesOfTheCard(self):
        told()
        tensors = [made(LARGE) for _ in range(5)]
        at = str(address_of(tensors[0]))
        tensors[0].add_(1)
        entries = [action for action, address, _ in told() if address == at and action.startswith("segment")]
        self.assertEqual(entries, ["segment_map", "segment_unmap", "segment_map"])  # mapped, evicted, fetched
        at = str(address_of(tensors[1]))
        self.assertTrue(any(evicted(s) and str(s["address"]) == at for s in torch.cuda.memory_snapshot()))
        told()
        del tensors
        self.assertNotIn("segment_unmap", [action for action, address, _ in told() if address == at])

    def test_Tracker_AllocatesItself_ToldAfterwards(self):  # C47
        told()
        x = torch.empty(4242, dtype=torch.uint8, device="cuda")
        sizes = [line[2] for line in told() if line[0] == "alloc"]
        self.assertEqual(sizes, ["4242", "2424"])
        del x

    def test_Tracker_Throws_JobGoesOn(self):
        library.tracker_throw(1)
        x = torch.empty(100, dtype=torch.uint8, device="cuda")
        library.tracker_throw(0)
        self.assertEqual(x.nbytes, 100)

    def test_Threads_ManyEntries_OneAtATimeInOrder(self):
        told()

        def work():
            for _ in range(100):
                torch.empty(1000, dtype=torch.uint8, device="cuda")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = told()
        self.assertNotIn(["nested"], lines)
        by_address = {}
        for action, address, _ in lines:
            if not action.startswith("segment"):
                by_address.setdefault(address, []).append(action)
        self.assertEqual(sum(map(len, by_address.values())), 4 * 100 * 3)
        for sequence in by_address.values():
            self.assertEqual(sequence, ["alloc", "free_requested", "free_completed"] * (len(sequence) // 3))


if __name__ == "__main__":
    unittest.main()
