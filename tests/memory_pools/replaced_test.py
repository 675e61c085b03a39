"""The job puts another allocator in Weir's place before CUDA starts, which torch allows without a word."""
import os
import subprocess
import sys
import unittest

JOB = """
import os, torch
assert torch.cuda.is_available()  # Weir is in place
if "REPLACED_BY" in os.environ:
    other = torch.cuda.memory.CUDAPluggableAllocator(*os.environ["REPLACED_BY"].split())
    torch.cuda.memory.change_current_allocator(other)
x = torch.ones(1000, device="cuda")
for _ in range(3):
    x = x + 1
print("sum", x.sum().item())
"""


OTHER = os.environ["TEST_OTHER_ALLOCATOR"] + " other_malloc other_free"
WEIR = os.environ["LD_PRELOAD"].split(":")[0] + " weir_malloc weir_free"


class Replaced(unittest.TestCase):
    def run_job(self, **variables):
        environment = {**os.environ, "WEIR_REQUIRED": "0", **variables}
        return subprocess.run([sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False)

    def test_Job_OtherAllocatorPutInPlace_SaidOnceAndJobGoesOn(self):
        done = self.run_job(REPLACED_BY=OTHER)
        self.assertEqual((done.returncode, done.stdout), (0, "sum 4000.0\n"), done.stderr)
        self.assertEqual(done.stderr.count("the job has replaced Weir by another allocator (pluggable)"), 1, done.stderr)

    def test_Job_OtherAllocatorAndWeirRequired_Ends(self):
        done = self.run_job(REPLACED_BY=OTHER, WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)

    def test_Job_WeirStillServesIt_NothingSaid(self):
        for what, variables in {"nothing replaced": {}, "Weir named twice": {"REPLACED_BY": WEIR}}.items():
            with self.subTest(what):
                done = self.run_job(WEIR_REQUIRED="1", **variables)
                self.assertEqual((done.returncode, done.stdout), (0, "sum 4000.0\n"), done.stderr)
                self.assertNotIn("replaced", done.stderr)


if __name__ == "__main__":
    unittest.main()
