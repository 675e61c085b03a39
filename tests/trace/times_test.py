"""On the emulated GPU the times of a trace are those of its virtual clock."""
import re
import unittest

import wtr
from traced_job import TracedJobTest

JOB = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.ones(32, 64).cuda()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
"""


class TimesTest(TracedJobTest):
    def run_once(self, trace="t.wtr") -> tuple:
        """(what the clock says at the exit, the records)."""
        done = self.run_job(JOB, trace=trace, flags=("--timing",))
        return re.findall(r"timing: (.*)", done.stderr), self.records() if trace else None

    def test_equal_runs_have_equal_times_and_they_are_the_virtual_clocks(self):
        timing, first = self.run_once()
        again_timing, again = self.run_once()
        untraced, _ = self.run_once(trace=None)
        self.assertEqual(len(timing), 3)
        self.assertEqual(timing, again_timing)
        self.assertEqual(timing, untraced)  # recording takes no virtual time
        # Addresses may differ, and a thread's id in the system does.
        same = lambda records: [(r.time, r.kind, r.name, r.thread, r.detail, r.amount if r.kind == "allocate" else 0)
                                for r in records]
        self.assertEqual(same(first), same(again))

        self.assertEqual(wtr.read(self.path).header.clock, 1)
        self.assertEqual(self.summary()["clock"], "virtual")
        total_ms = float(re.search(r"([\d.]+) ms in all", timing[0]).group(1))
        self.assertLessEqual(first[-1].time / 1e6, total_ms)
        self.assertGreater(first[-1].time / 1e6, total_ms / 2)
        for thread in {record.thread for record in first}:
            times = [record.time for record in first if record.thread == thread]
            self.assertEqual(times, sorted(times))


if __name__ == "__main__":
    unittest.main()
