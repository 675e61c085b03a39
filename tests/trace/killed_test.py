"""A job that is killed leaves a trace that reads up to the last frame that was written."""
import signal

import wtr
from traced_job import TracedJobTest

# Trains until its own trace shows at least WANTED steps, then kills itself in the middle of one: no time and no luck decides.
JOB = """
import os, signal, torch, wtr
wanted = WANTED
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64)).cuda()
optimizer = torch.optim.Adam(model.parameters())
done = 0
def seen():
    return sum(r.kind == "op begin" and r.name.startswith("Optimizer.step#") for r in wtr.read("t.wtr").records)
while True:
    loss = model(torch.ones(8, 64, device="cuda")).sum()
    if done >= wanted and done % 10 == 0 and seen() >= wanted:
        print(done, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    done += 1
"""


class KilledTest(TracedJobTest):
    def test_trace_of_a_killed_job_reads_up_to_its_last_frame(self):
        done = self.run_job(JOB.replace("WANTED", "40"), code=-signal.SIGKILL)
        summary, trace = self.summary(), wtr.read(self.path)
        self.assertFalse(summary["ended"])
        self.assertTrue(40 <= summary["optimizer_steps"] <= int(done.stdout), summary["optimizer_steps"])
        self.assertEqual(summary["cut_bytes"], trace.cut)
        kinds = [record.kind for record in trace.records]
        self.assertEqual({kind: summary["events_by_kind"][kind] for kind in wtr.KINDS[1:]},
                         {kind: kinds.count(kind) for kind in wtr.KINDS[1:]})
        self.assertEqual(kinds[0], "thread")
        self.assertNotIn("end", kinds)
        # A job of the same path takes the place of what the dead one left.
        self.run_job("import torch; torch.ones(3, device='cuda').sum().item()")
        self.assertTrue(self.summary()["ended"])


if __name__ == "__main__":
    import unittest
    unittest.main()
