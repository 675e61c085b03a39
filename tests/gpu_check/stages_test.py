"""tools/gpu_check without a device: how it compares runs, and that a stage that dies is a line."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu_check"
sys.path.insert(0, str(FOLDER))
import demo_stage  # noqa: E402
import driver_stages  # noqa: E402
import places  # noqa: E402
import processes  # noqa: E402

NATURAL = 300 << 20
OUT_OF_MEMORY = "torch.OutOfMemoryError: the cap is too small"


def outcome(losses=(1.0, 0.5), state="a", code=0, errors="", **weir):
    """One run's result, as if the job had written it."""
    line = "weir: exit device=0 " + " ".join(f"{key}={value}" for key, value in weir.items()) + "\n" if weir else ""
    result = {"losses": [loss.hex() for loss in losses], "final_loss": losses[-1], "hash": state, "seconds": [0.1] * len(losses),
              "peak_bytes": NATURAL}
    return demo_stage.Run(processes.Ended(code, "", errors + line, 1.0), result if code == 0 else {}, None)


def capped(**more):
    return outcome(**{"peak_resident": NATURAL // 3, "evictions": 7, **more})


class ScriptedDemo(demo_stage.Demo):
    """Runs that were thought up; `digests` are the texts that runs with digests leave."""

    def __init__(self, runs, digests=()):
        super().__init__("emulated", 2, False, lambda: 100)
        self.runs, self.digests, self.caps = list(runs), list(digests), []

    def job(self, vram, digests=None):
        self.caps.append(vram)
        if digests:
            digests.write_text(self.digests.pop(0))
            return outcome()
        return self.runs.pop(0)


class DemoTest(unittest.TestCase):
    def compare(self, *runs, digests=()):
        demo = ScriptedDemo(runs, digests)
        demo.compare()
        return demo, "\n".join(demo.lines)

    def test_three_equal_runs_pass(self):
        demo, text = self.compare(outcome(), outcome(), capped())
        self.assertTrue(demo.passed, text)
        self.assertIn("identical in the three runs", text)
        self.assertEqual(demo.caps, ["", "", str(NATURAL // 3)])
        self.assertEqual(demo.figures["weir_agrees"], True)

    def test_other_loss_under_the_cap_fails_and_names_step_and_operator(self):
        demo, text = self.compare(outcome(), outcome(), capped(losses=(1.0, 0.25)),
                                  digests=("0 aten.mm 11\n1 aten.add 22\n", "0 aten.mm 11\n1 aten.add 33\n"))
        self.assertFalse(demo.passed)
        self.assertIn("the loss of step 2 differs (0.5 and 0.25); first different operator: operator 1, aten.add", text)

    def test_other_weights_alone_fail(self):
        demo, text = self.compare(outcome(), outcome(), capped(state="b"), digests=("0 aten.mm 1\n", "0 aten.mm 1\n"))
        self.assertFalse(demo.passed)
        self.assertIn("weights or optimizer state do not", text)

    def test_card_that_does_not_repeat_itself_is_told_and_not_blamed_on_weir(self):
        demo, text = self.compare(outcome(), outcome(losses=(1.0, 0.75)), capped(losses=(1.0, 0.25)),
                                  digests=("0 aten.mm 1\n", "0 aten.mm 2\n"))
        self.assertTrue(demo.passed, text)
        self.assertIn("part by themselves: the loss of step 2 differs", text)
        self.assertIn("operator 0, aten.mm", text)
        self.assertFalse(demo.figures["uncapped_runs_agree"])

    def test_cap_that_the_job_does_not_fit_is_followed_by_the_next(self):
        demo, text = self.compare(outcome(), outcome(), outcome(code=1, errors=OUT_OF_MEMORY), capped(peak_resident=NATURAL // 2))
        self.assertTrue(demo.passed, text)
        self.assertEqual(demo.caps, ["", "", str(NATURAL // 3), str(NATURAL // 2)])

    def test_capped_run_that_crashes_is_not_tried_again(self):
        demo, text = self.compare(outcome(), outcome(), outcome(code=-11, errors="the last words\n"))
        self.assertFalse(demo.passed)
        self.assertIn("ended by signal 11", text)
        self.assertIn("the last words", text)

    def test_more_than_the_cap_fails(self):
        demo, text = self.compare(outcome(), outcome(), capped(peak_resident=NATURAL // 3 + 1))
        self.assertFalse(demo.passed)
        self.assertIn("of a cap of 100 MiB", text)

    def test_run_in_which_nothing_left_fails(self):
        self.assertFalse(self.compare(outcome(), outcome(), capped(evictions=0))[0].passed)

    def test_job_that_does_not_run_at_all_fails(self):
        demo, text = self.compare(outcome(code=3, errors="no torch\n"), outcome(code=3, errors="no torch\n"))
        self.assertFalse(demo.passed)
        self.assertIn("no torch", text)


class ProcessTest(unittest.TestCase):
    def test_limit_stops_a_program_and_keeps_what_it_said(self):
        ended = processes.run([sys.executable, "-uc", "print('said'); import threading; threading.Event().wait()"], 1.5)
        self.assertIsNone(ended.code)
        self.assertEqual(ended.output, "said\n")
        self.assertIn("stopped at its limit", ended.describe())

    def test_limit_stops_the_children_too(self):
        program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import threading; threading.Event().wait()'])"
        self.assertLess(processes.run([sys.executable, "-c", program], 1).seconds, 10)

    def test_program_that_is_not_there_is_an_outcome(self):
        ended = processes.run(["/no/such/program"], 1)
        self.assertEqual(ended.code, 127)
        self.assertIn("/no/such/program", ended.errors)


class StageTest(unittest.TestCase):
    def check(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "figures.json")
            done = subprocess.run([sys.executable, str(FOLDER / "gpu_check.py"), "--json", str(path), *arguments], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return done, json.loads(path.read_text()) if path.exists() else None

    def test_rule_that_fails_is_run_alone_and_told(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "suite")
            report = ('<testsuites><testsuite name="Rules"><testcase name="Good" result="completed"/>'
                      '<testcase name="Without" result="skipped"><skipped message="a.cc:3&#x0A;no kernels"/></testcase>'
                      '<testcase name="Bad" result="completed"><failure message="a.cc:9&#x0A;1 is not 2"/></testcase>'
                      '</testsuite></testsuites>')
            program.write_text(f"#!{sys.executable}\nimport pathlib, sys\n"
                               f"path = sys.argv[1].split(':', 1)[1]\npathlib.Path(path).write_text({report!r})\n"
                               f"open({str(pathlib.Path(folder, 'calls'))!r}, 'a').write(sys.argv[2] + chr(10))\nsys.exit(1)\n")
            program.chmod(0o755)
            before, places.CONFORMANCE = places.CONFORMANCE, program
            self.addCleanup(setattr, places, "CONFORMANCE", before)
            lines, figures, passed = driver_stages.conformance("emulated", 30)
            calls = pathlib.Path(folder, "calls").read_text().splitlines()
        self.assertEqual(calls, ["--gtest_filter=*", "--gtest_filter=Rules.Bad"])
        self.assertFalse(passed)
        self.assertIn("skipped: Rules.Without: no kernels", lines)
        self.assertIn("failed: Rules.Bad: 1 is not 2", lines)
        self.assertEqual(set(figures["ok"]), {"Rules.Good"})

    def test_wrong_usage(self):
        for arguments in (["--stages", "probe,other"], ["--gpu", "fake"], ["--steps", "0"], ["--patience", "0"]):
            done, figures = self.check(*arguments)
            self.assertEqual((done.returncode, done.stdout, figures), (2, "", None), arguments)

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "this machine has a GPU")
    def test_without_a_gpu_each_stage_says_so_and_the_file_is_there(self):
        done, figures = self.check("--stages", "probe")
        self.assertEqual(done.returncode, 1)
        self.assertFalse(figures["stages"]["probe"]["passed"])
        self.assertIn("libcuda.so.1", done.stdout)


if __name__ == "__main__":
    unittest.main()
