"""tools/run_stage.py sums up its runners truthfully: it fails when one fails, and when nothing ran."""
import contextlib
import io
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import run_stage  # noqa: E402


def suite(name, text, code):
    return run_stage.Suite(name, [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"], ["true"])


class RunStageTest(unittest.TestCase):
    def run_stage(self, suites, *arguments):
        """(exit code, output) of a stage that consists of these suites."""
        out = io.StringIO()
        with mock.patch.object(run_stage, "suites_of", lambda *_: suites), mock.patch.object(sys, "argv", ["x", *arguments]), \
                contextlib.redirect_stdout(out):
            code = run_stage.main()
        return code, out.getvalue()

    def test_all_pass(self):
        code, out = self.run_stage([suite("a", "3 passed, 0 failed", 0), suite("b", "100% tests passed", 0)], "--seed", "7")
        self.assertEqual(code, 0)
        self.assertIn("seed 7", out)
        self.assertEqual([line.split()[:2] for line in out.splitlines()[-2:]], [["ok", "a"], ["ok", "b"]])

    def test_one_fails(self):
        code, out = self.run_stage([suite("a", "2 passed, 1 failed", 1), suite("b", "1 passed, 0 failed", 0)])
        self.assertEqual(code, 1)
        self.assertIn("2 passed, 1 failed", out.splitlines()[-2])
        self.assertTrue(out.splitlines()[-2].strip().startswith("FAIL"))

    def test_nothing_ran(self):
        code, out = self.run_stage([])
        self.assertEqual(code, 1)
        self.assertIn("nothing ran", out)

    def test_build_fails(self):
        broken = run_stage.Suite("a", ["true"], ["true"], prepare=[["false"]])
        code, out = self.run_stage([broken])
        self.assertEqual(code, 1)
        self.assertIn("could not be built", out)

    def test_gpu_stage_without_a_gpu_says_why(self):
        with mock.patch.object(run_stage, "gpu_reason", lambda: "no driver"):
            code, out = self.run_stage([suite("a", "", 1)], "--stage", "gpu")
        self.assertEqual(code, 0)
        self.assertIn("skipped: no driver", out)

    def test_other_torch_that_is_not_there_is_named(self):
        for there in (True, False):
            with mock.patch.object(run_stage, "has_other_torch", lambda there=there: there):
                _, out = self.run_stage([suite("a", "", 0)], "--stage", "ci")
            self.assertEqual("torch 2.11 skipped" in out, not there)

    def test_budget_is_printed(self):
        for stage, minutes in run_stage.BUDGET_MINUTES.items():
            with mock.patch.object(run_stage, "gpu_reason", lambda: ""):
                self.assertIn(f"stage {stage}, budget {minutes} min", self.run_stage([suite("a", "", 0)], "--stage", stage)[1])

    def test_unknown_stage(self):
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()):
            self.run_stage([], "--stage", "all")
        self.assertEqual(ended.exception.code, 2)
