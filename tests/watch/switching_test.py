"""Watching begun and ended at random under load (R6): the bytes are those without Weir, and the emulated GPU has nothing to report.
TEST_SWITCHES: how often, in all. TEST_SEED: printed; drawn anew each time unless given."""
import json
import os
import random
import re
import subprocess
import sys
import unittest

SWITCHES = os.environ.get("TEST_SWITCHES", "100")
SEED = os.environ.get("TEST_SEED") or str(random.randrange(10**6))


def run(**variables):
    command = [os.environ["TEST_WEIR"], "run", "--gpu", "emulated", "--beside-real-gpu", "--vram", "96MiB", "--policy", "youngest",
               "--log", "info", "--", sys.executable, "switching_job.py", SWITCHES, SEED]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"seed {SEED}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    reports = sum(int(count) for count in re.findall(r"\breports=(\d+)", done.stderr))
    return json.loads(done.stdout.strip().splitlines()[-1]), reports, done.stderr


class Switching(unittest.TestCase):
    def test_Job_SwitchedAtRandom_SameBytes(self):
        print(f"seed {SEED}, {SWITCHES} switches", flush=True)
        found, reports, said = run()
        native, _, _ = run(WEIR_DISABLE="1", TEST_STEPS=json.dumps(found["steps"]))
        print({name: found[name] for name in ("steps", "switches", "retries")})
        self.assertEqual(reports, 0)
        self.assertEqual(found["digests"], native["digests"])
        self.assertGreaterEqual(found["switches"], int(SWITCHES))
        self.assertGreater(int(re.search(r"\bevictions=(\d+)", said)[1]), 0, "nothing was evicted: this run proves nothing")


if __name__ == "__main__":
    unittest.main()
