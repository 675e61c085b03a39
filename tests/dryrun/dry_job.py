"""Torch jobs under `weir dryrun`, each in a folder of its own."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEIR = os.environ["TEST_WEIR"]
HERE = pathlib.Path(__file__).resolve().parent
CLASSES = ("parameter", "gradient", "optimizer", "activation", "input", "temporary")


class DryJobTest(unittest.TestCase):
    def dry_run(self, program: str, *flags, code=0, **environment):
        """(the report, what the job printed). The program is train.py; `code`: what the command must end with."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "RANK"))}
        environment = kept | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"} | environment
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "train.py").write_text(program)
            done = subprocess.run([WEIR, "dryrun", "--json", "-o", "report.json", *flags, "--", sys.executable, "train.py"],
                                  env=environment, cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return json.loads(pathlib.Path(folder, "report.json").read_text()), done.stdout

    def check_peaks(self, report: dict, allocated: int, reserved: int):
        """The report has the peaks that torch tells itself, and the classes add up to what is allocated."""
        memory = report["memory"]
        self.assertEqual((memory["peak_allocated_bytes"], memory["peak_reserved_bytes"]), (allocated, reserved))
        self.assertEqual(sum(memory["at_peak"].values()), allocated)
        self.assertEqual((report["reports"], report["processes"]), (0, 1))
