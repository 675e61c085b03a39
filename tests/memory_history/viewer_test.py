"""torch's own viewer script reads the dump of a capped job that evicted, and the trace can be played backwards as its web page
does."""
import collections
import contextlib
import io
import os
import pathlib
import re
import runpy
import sys
import tempfile
import unittest
import unittest.mock

import torch

from memory import LARGE, MIB, MemoryTest, evicted, made, memory


class Player:
    """The state of the card as a viewer has it that starts from the snapshot and undoes the entries, last one first."""

    def __init__(self, snapshot: dict):
        self.segments = [(s["address"], s["address"] + s["total_size"], s["stream"]) for s in snapshot["segments"]]
        self.blocks = {b["address"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"}

    def undo(self, entry: dict):
        at, end, stream = entry["addr"], entry["addr"] + entry["size"], entry["stream"]
        match entry["action"]:
            case "alloc":
                self.blocks.remove(at)
            case "free_completed":
                self.blocks.add(at)
            case "segment_map":
                holds = next(s for s in self.segments if s[0] <= at and end <= s[1])  # one of them, whole
                self.segments.remove(holds)
                self.segments += [s for s in ((holds[0], at, holds[2]), (end, holds[1], holds[2])) if s[0] < s[1]]
            case "segment_unmap":
                before = [s for s in self.segments if s[1] == at and s[2] == stream][:1]
                after = [s for s in self.segments if s[0] == end and s[2] == stream][:1]
                for neighbour in before + after:
                    self.segments.remove(neighbour)
                self.segments.append((before[0][0] if before else at, after[0][1] if after else end, stream))

    def homeless(self) -> list:
        return [b for b in self.blocks if not any(begin <= b < end for begin, end, _ in self.segments)]


def capped_job():
    """Small, medium and large blocks come, leave, return and go."""
    kept = [torch.ones(100 * i + 1, device="cuda") for i in range(6)]
    layers = [made(LARGE) for _ in range(5)]
    for step in range(3):
        for layer in layers:
            layer.add_(1)
            kept.append(made(MIB + MIB // 2))
        del kept[-3:]
        layers[step] = made(LARGE - 4 * MIB * step)
    layers[4].record_stream(torch.cuda.Stream())
    del layers[4], layers[1]
    torch.cuda.synchronize()
    return kept, layers


class ViewerTest(MemoryTest):
    def test_Trace_PlayedBackwards_EveryBlockIsAlwaysInASegment(self):
        self.record()
        held = capped_job()
        snapshot = memory._snapshot()
        self.assertTrue(any(map(evicted, snapshot["segments"])))
        player = Player(snapshot)
        for entry in reversed(snapshot["device_traces"][0]):
            self.assertEqual(player.homeless(), [])
            player.undo(entry)
        self.assertEqual(player.blocks, set())  # all of it was recorded
        del held

    def test_Script_OfTorch_ReadsTheDump(self):
        self.record()
        held = capped_job()
        with tempfile.TemporaryDirectory() as folder:
            dump = f"{folder}/dump.pickle"
            memory._dump_snapshot(dump)
            cache = pathlib.Path(folder, ".cache")
            cache.mkdir()
            graph = cache / "flamegraph.pl"  # what torch would download: draws nothing, passes the lines on
            graph.write_text("#!/bin/sh\nexec cat\n")
            graph.chmod(0o755)

            def viewer(action, *options):
                """As python -m does it, and in this process: a torch takes seconds to import."""
                with contextlib.redirect_stdout(io.StringIO()) as printed, \
                        unittest.mock.patch.dict(os.environ, {"HOME": folder}), \
                        unittest.mock.patch.object(sys, "argv", ["_memory_viz.py", action, dump, *options]):
                    runpy.run_module("torch.cuda._memory_viz", run_name="__main__")
                return printed.getvalue()

            stats = viewer("stats")
            segments = torch.cuda.memory_snapshot()
            self.assertIn(f"segments: {len(segments)}\n", stats)
            recorded = collections.Counter(e["action"] for e in memory._snapshot()["device_traces"][0])
            printed = viewer("trace")
            self.assertEqual(len(re.findall(r"^del ", printed, re.M)), recorded["free_requested"])
            self.assertEqual(len(re.findall(r"^# free completed", printed, re.M)), recorded["free_completed"])
            for action in ("trace_plot", "segment_plot"):
                viewer(action, "-o", f"{folder}/{action}.html")
                self.assertIn("snapshot.pickle", pathlib.Path(folder, f"{action}.html").read_text())
            for action in ("memory", "segments"):
                viewer(action, "-o", f"{folder}/{action}.txt")
                lines = pathlib.Path(folder, f"{action}.txt").read_text()
                self.assertIn("memory.py:", lines)  # made() is there
                drawn = sum(int(line.rsplit(" ", 1)[1]) for line in lines.splitlines() if ";active_allocated;" in line)
                self.assertEqual(drawn, torch.cuda.memory_allocated())
        del held


if __name__ == "__main__":
    unittest.main()
