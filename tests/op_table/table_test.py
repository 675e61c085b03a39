"""How rows of the op table are merged, judged and written; and what the checked-in table has to say."""
import itertools
import os
import pathlib
import subprocess
import sys
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "op_table"))
import generate  # noqa: E402
import run_workers  # noqa: E402
import table  # noqa: E402
import to_cpp  # noqa: E402

ADD_ = {"kernels": "C", "arguments": [["self", "Tensor", True], ["other", "Tensor", False]]}


def measured(**fields):
    row = {"given": ["0", "1"], "fired": ["0"], "silent": ["1"], "tried": ["0", "1"], "refused": ["0", "1"], "inner": [],
           "layouts": ["strided"], "temporaries": 0, "kept": 0, "share": 0.0, "temporary_bytes": 0}
    return {**row, **fields}


class Judging(unittest.TestCase):
    def row(self, op="aten::add_.Tensor", **fields):
        return table.judged(op, ADD_, {"call a": measured(**fields)})

    def test_Agreement_IsAudited(self):
        self.assertEqual((self.row().treatment, self.row().disagreements), ("audited", []))

    def test_HookMissesMarkedArgument_IsADisagreement(self):
        self.assertEqual(self.row(fired=[]).disagreements, ["hook misses self"])

    def test_HookMissesArgumentThatWasNotAccessed_IsNone(self):
        self.assertEqual(self.row(fired=[], refused=["1"]).disagreements, [])

    def test_HookAddsArgument_CountsAsWritten(self):
        row = self.row(fired=["0", "1"])
        self.assertEqual(row.treatment, "audited; written too: other")
        self.assertEqual(table.written_arguments(row), {"self", "other"})

    def test_HookFiresAtTimes_IsWrittenButNotHooked(self):
        row = self.row(silent=["0", "1"])
        self.assertEqual((row.hook, row.disagreements), (["self~"], ["hook misses at times self"]))
        self.assertEqual((table.written_arguments(row), table.hooked_arguments(row)), ({"self"}, set()))

    def test_HookInsideSparse_SaysNothingOfDense(self):
        row = self.row(fired=["0", "1.values"], inner=["1.values"])
        self.assertEqual(row.disagreements, ["hook adds other.values", "reads inside other"])
        self.assertEqual(row.treatment, "audited; unwrapped: other")
        self.assertEqual(table.written_arguments(row), {"self"})

    def test_ListOpsAndNormalisations_AreNotAudited(self):
        for op in ("aten::_foreach_add_.List", "aten::_fused_adamw_", "aten::_amp_foreach_x", "aten::native_batch_norm",
                   "aten::instance_norm", "aten::_cudnn_rnn"):
            self.assertFalse(table.is_audited(self.row(op)), op)

    def test_NotRun_IsNotAuditedAndSaysWhy(self):
        row = table.judged("aten::add_.Tensor", ADD_, {}, "no library")
        self.assertFalse(table.is_audited(row))
        self.assertIn("no library", row.treatment)

    def test_ArgumentThatWasNeverGiven_CountsAsWritten(self):
        row = self.row(given=["0"], tried=["0"], refused=["0"])
        self.assertEqual(row.treatment, "audited; not given: other")
        self.assertEqual(table.written_arguments(row), {"self", "other"})
        self.assertEqual(table.hooked_arguments(row), {"self"})

    def test_NeverGivenAndReadInside_AreBothSaid(self):
        about = {**ADD_, "arguments": [*ADD_["arguments"], ["weight", "Optional[Tensor]", False], ["alpha", "Scalar", False]]}
        row = table.judged("aten::add_.Tensor", about, {"call a": measured(inner=["1.values"])})
        self.assertEqual(row.treatment, "audited; not given: weight; unwrapped: other")
        self.assertEqual(table.written_arguments(row), {"self", "weight"})


class Sources(unittest.TestCase):
    def test_Cover_IsSmallAndShowsEverything(self):
        rows = {"a": measured(fired=["0"], given=["0"]), "b": measured(fired=["0", "1"]), "c": measured(temporaries=3)}
        needed = table.needed_sources(rows)
        self.assertEqual(needed, ["b", "c"])
        self.assertEqual(table.merged([rows[name] for name in needed]), table.merged(list(rows.values())))

    def test_Sample_DrawsSourcesThatCoverWholeRows(self):
        rows = {f"aten::{i}": table.Row(f"aten::{i}", "C", [], [], [], "0", [], "audited", [f"call {i % 7}", f"call {i % 5}"])
                for i in range(35)}
        names, sources = generate.sampled(rows, "10", 3)
        self.assertGreaterEqual(len(names), 10)
        for name in names:
            self.assertLessEqual(set(rows[name].sources), set(sources))
        self.assertEqual(generate.sampled(rows, "all", 3)[0], sorted(rows))


class Hanging(unittest.TestCase):
    """A worker is given up when it stands still or loops, not when the machine is slow."""

    def answer(self, code: str, cpu_seconds=lambda: 0.0):
        """`cpu_seconds` stands for what the worker has used, each time that it is asked."""
        process = subprocess.Popen([sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        times = mock.patch.object(run_workers, "cpu_seconds", lambda _: cpu_seconds())
        with process, times, mock.patch.object(run_workers, "IDLE_SECONDS", 0.01):
            self.process = process
            return run_workers.answer_of(process)

    def test_WorkerThatDies_HasNoAnswer(self):
        self.assertIsNone(self.answer("import os; os._exit(3)", itertools.count().__next__))

    def test_WorkerThatStandsStill_IsKilled(self):
        self.assertIsNone(self.answer("input()"))

    def test_WorkerThatLoops_IsKilled(self):
        self.assertIsNone(self.answer("input()", itertools.count(0, run_workers.CPU_SECONDS).__next__))

    def test_WorkerThatTakesLong_IsWaitedFor(self):
        asked = itertools.count()

        def cpu_seconds():
            count = next(asked)
            if count == 20:
                self.process.stdin.write("[2]\n")
                self.process.stdin.flush()
            return count / 1000

        self.assertEqual(self.answer("print(input())", cpu_seconds), [2])

    def test_CpuSeconds_OfThisProcess_Grow(self):
        before, start = run_workers.cpu_seconds(os.getpid()), time.process_time()
        while time.process_time() < start + 0.1:
            pass
        self.assertAlmostEqual(run_workers.cpu_seconds(os.getpid()) - before, 0.1, delta=0.09)


class CheckedIn:
    """What each table says, whatever the torch."""
    torch = ""

    @classmethod
    def setUpClass(cls):
        cls.path = ROOT / "pytorch_plugin" / "op_tables" / f"{cls.torch}.txt"
        cls.rows = table.read(cls.path)

    def test_Text_ReadAndWritten_IsTheSame(self):
        lines = [line for line in self.path.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual([row.text() for row in self.rows.values()], lines)
        self.assertEqual(list(self.rows), sorted(self.rows))

    def test_MultiTensorKernels_DisagreeWithTheHook(self):
        for op in ("_foreach_add_.List", "_foreach_add_.Scalar", "_foreach_copy_", "_foreach_zero_", "_foreach_lerp_.List",
                   "_fused_adamw_", "_fused_sgd_", "_amp_foreach_non_finite_check_and_unscale_"):
            row = self.rows["aten::" + op]
            self.assertTrue(any(text.startswith("hook misses") for text in row.disagreements), op)
            self.assertEqual(row.treatment, "all written: list op")

    def test_RunningStatistics_AreWrittenWithoutAMark(self):
        row = self.rows["aten::native_batch_norm"]
        self.assertEqual(row.writes, [])
        self.assertLessEqual({"running_mean", "running_var"}, table.written_arguments(row))
        self.assertEqual(row.treatment, "all written: normalisation")

    def test_SparseReads_AreInside(self):
        for op in ("_coalesce", "_sparse_sum.dim", "sum", "mul.Tensor"):
            self.assertIn("self", self.rows["aten::" + op].treatment.partition("unwrapped: ")[2].split(","), op)

    def test_Writes_MarkedBySchema_AreNeverLost(self):
        for row in self.rows.values():
            self.assertLessEqual(set(row.writes), table.written_arguments(row), row.op)
            self.assertEqual(table.is_audited(row), bool(row.sources) and not row.treatment.startswith("all"), row.op)

    def test_Cpp_HasWrittenAndHookedNames(self):
        self.assertEqual(to_cpp.line_of(self.rows["aten::zero_"]), '    {"aten::zero_", "self,", "self,"},')


class CheckedIn215(CheckedIn, unittest.TestCase):
    torch = "2_15"


class CheckedIn211(CheckedIn, unittest.TestCase):
    torch = "2_11"


if __name__ == "__main__":
    unittest.main()
