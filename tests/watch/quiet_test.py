"""A job that repeats itself and fits is not watched, from its first steps on; what it then does anew is seen in time."""
import json
import os
import subprocess
import sys
import unittest

JOB = """
import json, sys, torch
from torch_weir import _core
torch.manual_seed(0)
layers = [torch.nn.Linear(1024, 1024) for _ in range(4)]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def step(batch):
    model(torch.ones(batch, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
def figures():
    own = _core._own_stats(0)
    return {name: own["weir/" + name] for name in ("ops_observed", "watches", "evictions", "fetches", "cap", "peak_resident")}
for _ in range(int(sys.argv[1])):
    step(256)
early = figures()
for _ in range(10):
    step(256)
late = figures()
for _ in range(int(sys.argv[2])):
    step(int(sys.argv[3]))
print(json.dumps({"early": early, "late": late, "end": figures(), "sum": sum(p.double().sum().item() for p in model.parameters())}))
"""


def run(cap: str, *arguments, **variables) -> dict:
    command = [os.environ["TEST_WEIR"], "run", "--gpu", "emulated", "--beside-real-gpu", "--vram", cap, "--reports", "abort", "--",
               sys.executable, "-c", JOB, *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Quiet(unittest.TestCase):
    def unwatched(self, found):
        self.assertGreater(found["early"]["ops_observed"], 0)
        self.assertEqual(found["late"]["ops_observed"], found["early"]["ops_observed"])
        self.assertEqual((found["late"]["evictions"], found["late"]["fetches"], found["late"]["watches"]), (0, 0, 0))

    def test_Job_FarBelowItsCap_IsNotWatched(self):
        self.unwatched(run("4GiB", 12, 0, 0))

    def test_Job_JustBelowItsCap_IsNotWatchedUntilABatchIsLarger(self):
        peak = run("4GiB", 12, 0, 0)["end"]["peak_resident"]
        cap = f"{peak * 26 // 25 // 2**20 + 1}MiB"
        self.unwatched(run(cap, 12, 0, 0))
        found = run(cap, 12, 3, 2048)
        self.unwatched(found)
        self.assertGreater(found["end"]["evictions"], 0)
        self.assertGreaterEqual(found["end"]["watches"], 1)
        self.assertLessEqual(found["end"]["peak_resident"], found["end"]["cap"])
        self.assertEqual(found["sum"], run("4GiB", 12, 3, 2048)["sum"])

    def test_Job_WatchAlways_IsWatched(self):
        found = run("4GiB", 12, 0, 0, WEIR_WATCH="always")
        self.assertGreater(found["late"]["ops_observed"], found["early"]["ops_observed"])


if __name__ == "__main__":
    unittest.main()
