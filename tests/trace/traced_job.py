"""Torch jobs on the emulated GPU that are traced, each in a folder of its own."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import wtr

WEIR = os.environ["TEST_WEIR"]
HERE = pathlib.Path(__file__).resolve().parent


class TracedJobTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "t.wtr"

    def run_job(self, program: str, *, trace="t.wtr", kernels="none", flags=(), code=0, **environment):
        """The finished process; it ran in the test's folder. `trace` None: without a trace. `code`: what it must end with."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "RANK"))}
        environment = kept | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "WEIR_LOG": "info"} | environment
        flags = [*flags, *(["--trace", str(trace)] if trace is not None else [])]
        command = [WEIR, "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", kernels, *flags, "--", sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def lines_about_trace(self, done) -> list:
        return [line for line in done.stderr.splitlines() if "WEIR_TRACE" in line]

    def traces(self) -> list:
        return sorted(path.name for path in self.folder.iterdir())

    def summary(self, path=None) -> dict:
        done = subprocess.run([WEIR, "trace", str(path or self.path), "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def records(self, path=None) -> list:
        return wtr.read(path or self.path).records
