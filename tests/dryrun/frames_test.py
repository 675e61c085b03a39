"""With no cap Weir holds at most 1.10 times what the job asks for at its peak: frames_test.py MODEL BATCH."""
import os
import re
import subprocess
import sys
import unittest

from dry_job import HERE, WEIR

MODEL, BATCH = sys.argv[1], sys.argv[2]


class FramesTest(unittest.TestCase):
    def test_peak_of_frames(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        done = subprocess.run([WEIR, "run", "--gpu", "emulated:h200", "--beside-real-gpu", "--kernels", "none", "--vram", "off",
                               "--log", "info", "--", sys.executable, "-c", f"import models; models.train({MODEL!r}, {BATCH}, 6)"],
                              env=environment | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", re.search(r"weir: exit .*", done.stderr)[0])}
        self.assertLessEqual(figures["peak_frames"], 1.10 * figures["peak_requested"])
        self.assertEqual((figures["driver_calls_steady"], figures["evictions"]), (0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
