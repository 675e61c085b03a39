"""Kernels `none`: what was computed, what was read all the same, and what the run calls its figures: values_test.py PRELOAD_LIBRARY."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PRELOAD = sys.argv[1]

# What libcuda.so.1 answers, as (verdict, [(op, place, floats, times, bytes)]).
ASK = f"""
import ctypes
class Read(ctypes.Structure):
    _fields_ = [("op", ctypes.c_char_p), ("place", ctypes.c_char_p), ("floats", ctypes.c_int), ("times", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64)]
EACH = ctypes.CFUNCTYPE(None, ctypes.POINTER(Read), ctypes.c_void_p)
def ask():
    found = []
    def each(read, context):
        read = read.contents
        found.append((read.op.decode(), read.place.decode(), read.floats, read.times, read.bytes))
    library = ctypes.CDLL({str(pathlib.Path(PRELOAD).parent / "libcuda.so.1")!r})
    return library.weir_emulated_values(EACH(each), None), found
"""
EXACT, UNLESS_FLOATS, ESTIMATE = range(3)


def run(program: str, **more) -> tuple:
    """(what it printed, the lines about values); the program is job.py, its first line is line 1."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    environment = kept | {"LD_PRELOAD": PRELOAD, "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1", "WEIR_KERNELS": "none",
                          "WEIR_EMULATED_TIMING": "1"} | more
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "answer.py").write_text(ASK)
        path = pathlib.Path(folder, "job.py")
        path.write_text(program)
        done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)
    if done.returncode or "reports=0" not in done.stderr:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout, re.findall(r"values: (.*)", done.stderr)


class ReadsTest(unittest.TestCase):
    def test_places_are_listed_once_and_make_an_estimate(self):
        printed, lines = run("""import torch
from answer import ask
x = torch.ones(1 << 20, device="cuda")
print(ask() == (0, []))
for _ in range(3):
    loss = x.sum()
    print(loss.item())
print(ask() == (1, [("aten::_local_scalar_dense", "job.py:7", 1, 3, 12)]))
print(x.nonzero().shape)
print(x.cpu().sum())
print(ask()[0], [read[:4] for read in ask()[1]])
""")
        self.assertEqual(printed.splitlines(), ["True", "0.0", "0.0", "0.0", "True", "torch.Size([0, 1])", "tensor(0.)", str(ESTIMATE) + " " + str(
            [("aten::nonzero", "job.py:9", 0, 1), ("aten::_local_scalar_dense", "job.py:7", 1, 3), ("aten::copy_", "job.py:10", 1, 1)])])
        self.assertRegex(lines[0], r"^estimate; .*: 1 place; floating-point values at 2 places$")
        self.assertRegex(lines[1], r"^aten::nonzero at job.py:9, 1 times, \d+ bytes$")
        self.assertEqual(lines[2], "aten::_local_scalar_dense at job.py:7, 3 times, 12 bytes, floating-point")

    def test_floats_leave_a_condition(self):
        _, lines = run("import torch\nloss = torch.ones(1 << 20, device='cuda').sum()\nprint(loss.tolist())\n")
        self.assertRegex(lines[0], r"^exact, unless a floating-point value .*: 1 place$")
        self.assertRegex(lines[1], r" at job.py:3, .*floating-point$")

    def test_job_that_reads_nothing_is_exact(self):
        _, lines = run("import torch\nids = torch.arange(5).cuda()\nassert ids[3].item() == 3\n")
        self.assertEqual(lines, ["exact; the program read nothing that was not computed"])

    def test_print_of_a_tensor_decides_nothing(self):
        printed, lines = run("import torch\nx = torch.ones(1 << 20, device='cuda')\nprint(x.sum(), x)\n")
        self.assertIn("tensor(0., device='cuda:0') tensor([0.,", printed)
        self.assertEqual(lines, ["exact; the program read nothing that was not computed"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
