"""The job puts another allocator in Weir's place before CUDA starts, which torch allows without a word."""
import os
import subprocess
import sys
import unittest

JOB = """
import os, torch
assert torch.cuda.is_available()  # Weir is in place
if "REPLACED" in os.environ:
    other = torch.cuda.memory.CUDAPluggableAllocator(os.environ["TEST_OTHER_ALLOCATOR"], "other_malloc", "other_free")
    torch.cuda.memory.change_current_allocator(other)
x = torch.ones(1000, device="cuda")
for _ in range(3):
    x = x + 1
print("sum", x.sum().item())
"""


class Replaced(unittest.TestCase):
    def run_job(self, **variables):
        environment = {**os.environ, "WEIR_REQUIRED": "0", **variables}
        return subprocess.run([sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False)

    def test_Job_OtherAllocatorPutInPlace_SaidOnceAndJobGoesOn(self):
        done = self.run_job(REPLACED="1")
        self.assertEqual((done.returncode, done.stdout), (0, "sum 4000.0\n"), done.stderr)
        self.assertEqual(done.stderr.count("the job has replaced Weir by another allocator (pluggable)"), 1, done.stderr)

    def test_Job_OtherAllocatorAndWeirRequired_Ends(self):
        done = self.run_job(REPLACED="1", WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)

    def test_Job_NothingReplaced_NothingSaid(self):
        done = self.run_job(WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout), (0, "sum 4000.0\n"), done.stderr)
        self.assertNotIn("replaced", done.stderr)


if __name__ == "__main__":
    unittest.main()
