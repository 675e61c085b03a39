"""C25: whatever order pools, allocators and blocks are destroyed in at the exit, the exit code is the job's own."""
import subprocess
import sys
import unittest

from harness import MIB


class ExitTest(unittest.TestCase):
    def test_PoolsAtTheExit_TheCodeIsTheJobs(self):
        cases = {("allocator-first", "normal"): 0, ("block-first", "exception"): 1, ("own", "code"): 3}
        for (order, way), code in cases.items():
            with self.subTest(order=order, way=way):
                run = subprocess.run([sys.executable, "exit_job.py", order, way], capture_output=True, text=True, timeout=100)
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertIn(f"sum {2 * 2 * MIB}", run.stdout)
                self.assertIn("reports=0", run.stderr)


if __name__ == "__main__":
    unittest.main()
