"""Where traces of real jobs go: patterns, processes, what lies at the path already, full disks, and no trace at all."""
import json
import os
import pathlib
import unittest

import wtr
from traced_job import TracedJobTest

JOB = """
import torch
print(torch.ones(1000, device="cuda").sum().item())
"""


class NamesTest(TracedJobTest):
    def test_name_has_process_host_and_rank(self):
        done = self.run_job("import os\n" + JOB + "print(os.getpid())", trace="%h-%r-%p-100%%.wtr", RANK="7")
        process, host = int(done.stdout.split()[-1]), os.uname().nodename
        self.assertEqual(self.traces(), [f"{host}-7-{process}-100%.wtr"])
        header = wtr.read(self.folder / self.traces()[0]).header
        self.assertEqual((header.process, header.host, header.rank), (process, host[:63], "7"))


class ForkTest(TracedJobTest):
    CHILDREN = """
import os, torch
children = []
for index in range(2):
    child = os.fork()
    if child == 0:
        torch.ones(1000 * (index + 1), device="cuda").sum().item()
        raise SystemExit
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
print(*children)
"""

    def test_forked_children_have_files_of_their_own(self):
        done = self.run_job(self.CHILDREN, trace="t-%p.wtr")
        children = list(map(int, done.stdout.split()[-2:]))
        self.assertEqual(self.traces(), sorted(f"t-{child}.wtr" for child in children))
        for index, child in enumerate(children):
            trace = wtr.read(self.folder / f"t-{child}.wtr")
            self.assertEqual(trace.header.process, child)
            self.assertEqual([r.amount for r in trace.records if r.kind == "allocate"][0], 4000 * (index + 1))

    def test_child_of_a_traced_process_leaves_its_file_alone(self):
        self.run_job(JOB + """
import os
child = os.fork()
if child == 0:
    raise SystemExit
os.waitpid(child, 0)
torch.ones(3, device="cuda")
""")
        self.assertEqual(self.traces(), ["t.wtr"])
        kinds = [record.kind for record in self.records()]
        self.assertEqual((kinds.count("end"), kinds[-1]), (1, "end"))


class PathTest(TracedJobTest):
    def assert_runs_without(self, done, *parts):
        """The job ran, and one line says that it has no trace."""
        self.assertEqual(done.stdout, "1000.0\n", done.stderr)
        lines = self.lines_about_trace(done)
        self.assertEqual(len(lines), 1, done.stderr)
        for part in (*parts, "the job runs without a trace"):
            self.assertIn(part, lines[0])

    def test_path_that_cannot_be_written(self):
        self.assert_runs_without(self.run_job(JOB, trace="no/such/t.wtr"), "no/such/t.wtr", "No such file or directory")
        self.assertEqual(self.traces(), [])

    def test_link_is_not_followed(self):
        target = self.folder / "target"
        target.write_text("precious")
        self.path.symlink_to(target)
        self.assert_runs_without(self.run_job(JOB), "t.wtr: it is a link")
        self.assertEqual(target.read_text(), "precious")

    def test_trace_of_a_job_that_runs_is_not_replaced(self):
        done = self.run_job(JOB + """
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import torch; torch.ones(9, device='cuda')"], capture_output=True, text=True).stderr)
""")
        self.assertIn("another process writes its trace there (put %p into the name)", done.stdout)
        self.assertNotIn(36, [record.amount for record in self.records() if record.kind == "allocate"])


class DiskTest(TracedJobTest):
    # As Python ignores SIGXFSZ, and other programs do not.
    FULL = """
import resource, signal, torch
x = torch.ones(1000, device="cuda")  # the emulated card's memory is a file too
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
for _ in range(20000):
    x = x + 1
torch.cuda.synchronize()
print("done")
"""

    def test_full_disk_ends_the_trace_and_not_the_job(self):
        done = self.run_job(self.FULL)
        self.assertEqual(done.stdout, "done\n")
        lines = self.lines_about_trace(done)
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn("the trace ends here, the job goes on", lines[0])
        summary = self.summary()
        self.assertEqual((summary["ended"], summary["cut_bytes"]), (False, 0))
        self.assertLessEqual(summary["file_bytes"], 65536)
        self.assertGreater(summary["events"], 1000)


class NoTraceTest(TracedJobTest):
    LOOK = JOB + """
import json, os
print(json.dumps([[os.readlink(f"/proc/self/fd/{fd}") for fd in sorted(os.listdir("/proc/self/fd"))[:-1]],
                  [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]]))
"""

    def look(self, trace):
        done = self.run_job(self.LOOK, trace=trace)
        files, threads = json.loads(done.stdout.splitlines()[-1])
        mine = [pathlib.Path(name).name for name in files if name.startswith(str(self.folder.resolve()))]
        return mine, threads.count("weir-trace"), [word for word in done.stderr.split() if word.startswith("threads_started=")]

    def test_without_a_trace_nothing_is_opened_and_no_thread_started(self):
        self.assertEqual(self.look("t.wtr"), (["t.wtr"], 1, ["threads_started=1"]))
        self.path.unlink()
        self.assertEqual(self.look(None), ([], 0, ["threads_started=0"]))
        self.assertEqual(self.traces(), [])


if __name__ == "__main__":
    unittest.main()
