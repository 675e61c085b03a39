"""Torch's statistics of one job, with its own allocator and with Weir, key by key (docs/parity.md says which differ by design)."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

WEIR = os.environ["WEIR_TEST_WEIR"]
JOB = pathlib.Path(__file__).resolve().parent / "allocations.py"
# The meaning is the same: blocks and bytes asked for. Rounded bytes, segments and splits are the layout, which is Weir's own.
SAME = ("allocation.", "active.", "requested_bytes.", "num_ooms", "max_split_size")


def statistics(disabled: bool) -> list:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    environment["WEIR_DISABLE"] = "1" if disabled else "0"
    command = [WEIR, "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "off", "--",
               sys.executable, JOB]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Statistics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.native, cls.weir = statistics(disabled=True), statistics(disabled=False)

    def test_Keys_AreTheSame(self):
        for native, weir in zip(self.native, self.weir, strict=True):
            self.assertEqual(set(native), set(weir))

    def test_SameMeaning_SameFigure(self):
        compared = 0
        for place, (native, weir) in enumerate(zip(self.native, self.weir, strict=True)):
            for key, value in native.items():
                if key.startswith(SAME):
                    compared += 1
                    with self.subTest(place=place, key=key):
                        self.assertEqual(weir[key], value)
        self.assertGreater(compared, 200)

    def test_RecordedStream_TheBlockIsActiveAndNotAllocated(self):
        waiting = self.weir[2]
        self.assertEqual(waiting["active.all.current"], waiting["allocation.all.current"] + 1)
        self.assertGreaterEqual(waiting["active_bytes.all.current"] - waiting["allocated_bytes.all.current"], 3_000_000)

    def test_Bytes_RoundedOnlyUp(self):
        for stats in self.weir:
            self.assertGreaterEqual(stats["active_bytes.all.current"], stats["requested_bytes.all.current"])
            self.assertGreaterEqual(stats["reserved_bytes.all.current"], stats["active_bytes.all.current"])


if __name__ == "__main__":
    unittest.main()
