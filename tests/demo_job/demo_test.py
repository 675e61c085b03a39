"""tools/demo in each of its forms, with few steps: it must judge itself and its figures must agree with the verdict."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo_job" / "demo.py"
FIGURES = {"natural_peak_bytes", "cap_bytes", "peak_resident_bytes", "identical", "evictions", "evicted_bytes", "fetches",
           "fetched_bytes", "reports", "final_loss", "step_seconds"}


class DemoTest(unittest.TestCase):
    def demo(self, *flags):
        """The figures of a demo that passed."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "figures.json"
            done = subprocess.run([sys.executable, str(DEMO), "--steps", "4", "--json", str(path), *flags], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            figures = json.loads(path.read_text())
        self.assertEqual(set(figures), FIGURES)
        self.assertTrue(figures["identical"])
        self.assertEqual(figures["reports"], 0)
        self.assertGreater(figures["evictions"], 0)
        self.assertGreaterEqual(figures["evicted_bytes"], figures["evictions"])
        self.assertLessEqual(figures["peak_resident_bytes"], figures["cap_bytes"])
        return figures

    def test_cap_of_a_fifth(self):
        third = self.demo()
        self.assertEqual(third["cap_bytes"], third["natural_peak_bytes"] // 3)
        cap = third["natural_peak_bytes"] // 5
        fifth = self.demo("--vram", str(cap))
        self.assertEqual(fifth["cap_bytes"], cap)
        self.assertEqual(fifth["final_loss"], third["final_loss"])
        self.assertGreater(fifth["evicted_bytes"], third["evicted_bytes"])

    def test_load_by_environment(self):
        self.demo("--load", "env")

    def test_load_as_pluggable_allocator(self):
        self.demo("--load", "pluggable")

    def test_wrong_usage(self):
        for flags in (["--vram", "24Gb"], ["--steps", "0"], ["--load", "other"]):
            done = subprocess.run([sys.executable, str(DEMO), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
