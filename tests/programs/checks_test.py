"""The checks must find what is wrong: each test breaks one thing of a run that passes. Run with `python -m unittest`."""
import dataclasses
import json
import unittest

import checks
import matrix
from run import Run

NATURAL = {"digest": "aa", "losses": [1.0], "peak_allocated_bytes": 300}
EMULATOR = "weir: emulated GPU: h200 kernels=cpu launches=9 copies=9 reports={}\n"
WEIR = ("weir: exit device=0 cap={cap} peak_resident={peak} floor=2 peak_logical=300 evictions={evictions} "
        "evicted_bytes=9 fetches=1 fetched_bytes=9 stalls=0 ops_observed={ops} threads_started=0 copies=0 "
        "driver_calls_steady=0 peak_frames=300 peak_requested=300\n")
CAPPED = matrix.Cell("capped", "cpu", 1 / 3, "lru")
UNCAPPED = matrix.Cell("uncapped", "cpu")
ADAMW = matrix.PROGRAMS[0]
REFUSED = next(program for program in matrix.PROGRAMS if program.expects == "refused")


def run(code=0, result=NATURAL, reports=0, cap=100, peak=100, evictions=5, ops=0, **changes):
    stderr = WEIR.format(cap=cap, peak=peak, evictions=evictions, ops=ops) + EMULATOR.format(reports)
    good = Run("command", code, json.dumps(result) + "\n", stderr, 1.0)
    return dataclasses.replace(good, **changes)


def problems(finished, cell=CAPPED, program=ADAMW):
    return checks.problems(program, cell, finished, NATURAL, 100)


def refusal(op, name, kind="OutOfMemoryError", cap="16.00 MiB"):
    return {"op": op, "type": kind, "text": f"CUDA out of memory. {name} needs 36.00 MiB, the cap is {cap}."}


class Checks(unittest.TestCase):
    def test_Kept_OutOfMemoryWithTheReason_Passes(self):
        program = matrix.on_torch("2.11", next(p for p in matrix.PROGRAMS if p.name == "libtorch"))
        reason = "CUDA out of memory. nothing leaves in a job with compiled or foreign code\n"
        stderr = WEIR.format(cap=100, peak=100, evictions=0, ops=1)
        self.assertEqual(problems(run(code=-6, stderr=reason + stderr), program=program), [])
        for code, text in ((0, reason + stderr), (-6, stderr), (-6, reason + stderr.replace("evictions=0", "evictions=1")),
                           (-6, "CUDA out of memory.\n" + stderr)):
            self.assertNotEqual(problems(run(code=code, stderr=text), program=program), [])

    def test_OtherTorch_OpThatAllocatesNothing_MayRaiseRuntimeError(self):
        names = {"allocating": "add", "in_place": "mul_", "list_op": "_foreach_add_", "matrix": "mm", "fused": "_fused_adam_"}
        for torch, op, count in (("2.11", "in_place", 0), (None, "in_place", 1), ("2.11", "matrix", 1)):
            errors = [refusal(o, name, "RuntimeError" if o == op else "OutOfMemoryError") for o, name in names.items()]
            found = problems(run(result={**NATURAL, "errors": errors}), program=matrix.on_torch(torch, REFUSED))
            self.assertEqual(len(found), count, found)

    def test_Capped_AsItShouldBe_Passes(self):
        self.assertEqual(problems(run()), [])

    def test_Capped_OtherDigest_Fails(self):
        self.assertIn("digest", problems(run(result={**NATURAL, "digest": "bb"}))[0])

    def test_Capped_OtherDigestWithoutValues_Passes(self):
        cell = dataclasses.replace(CAPPED, kernels="none")
        self.assertEqual(problems(run(result={**NATURAL, "digest": "bb"}), cell), [])

    def test_Capped_NothingEvicted_Fails(self):
        self.assertIn("evicted", problems(run(evictions=0))[0])

    def test_Capped_PeakAboveCap_Fails(self):
        self.assertIn("peak_resident", problems(run(peak=101))[0])

    def test_Capped_AnotherCap_Fails(self):
        self.assertIn("the cap was", problems(run(cap=200))[0])

    def test_Run_EmulatorReported_Fails(self):
        self.assertIn("reported", problems(run(reports=2))[0])

    def test_Run_NoEmulatorLine_Fails(self):
        self.assertIn("no exit line", problems(run(stderr=WEIR.format(cap=100, peak=100, evictions=5, ops=0)))[0])

    def test_Run_NoWeirLine_Fails(self):
        self.assertIn("Weir printed no", problems(run(stderr=EMULATOR.format(0)))[0])

    def test_Run_ExitCode_Fails(self):
        self.assertIn("exit code -11", problems(run(code=-11))[0])

    def test_Run_TimedOut_Fails(self):
        self.assertIn("still running", problems(run(timed_out=True))[0])

    def test_Run_NoJson_Fails(self):
        self.assertIn("no JSON", problems(run(stdout="Traceback\n"))[0])

    def test_Uncapped_Observed_Fails(self):
        self.assertEqual(problems(run(ops=7), UNCAPPED), ["ops_observed=7 without a cap"])

    def test_Refused_EachOpByName_Passes(self):
        names = {"allocating": "aten::add", "in_place": "aten::mul_", "list_op": "aten::_foreach_add_",
                 "matrix": "aten::mm", "fused": "aten::_fused_adam_"}
        errors = [refusal(op, name) for op, name in names.items()]
        self.assertEqual(problems(run(result={**NATURAL, "errors": errors}), program=REFUSED), [])

    def test_Refused_OneOpRan_Fails(self):
        found = problems(run(result={**NATURAL, "errors": [refusal("allocating", "aten::add")]}), program=REFUSED)
        self.assertIn("matrix was not refused", found)

    def test_Refused_RuntimeError_Fails(self):
        errors = [refusal("in_place", "aten::mul_", kind="RuntimeError")]
        found = problems(run(result={**NATURAL, "errors": errors}), program=REFUSED)
        self.assertTrue(any("raised RuntimeError" in sentence for sentence in found))

    def test_Refused_WrongBytes_Fails(self):
        self.assertIn("wrong bytes", problems(run(result={**NATURAL, "wrong": ["matrix"]}))[0])


class Matrix(unittest.TestCase):
    def test_Ci_AnySeed_OneCappedCellForEachKernels(self):
        for seed in range(5):
            for program, cells in matrix.choose("ci", seed, "both", []):
                if program.expects not in ("card", "fits"):
                    capped = [cell.kernels for cell in cells if cell.kind == "capped"]
                    self.assertEqual(capped, list(program.kernels), program.name)

    def test_Ci_SameSeed_SameCells(self):
        self.assertEqual(matrix.choose("ci", 7, "both", []), matrix.choose("ci", 7, "both", []))

    def test_Full_EveryProgram_AllCells(self):
        chosen = matrix.choose("full", 0, "both", [])
        self.assertEqual([program for program, _ in chosen], matrix.PROGRAMS)
        self.assertTrue(all(cells == program.cells() for program, cells in chosen))


if __name__ == "__main__":
    unittest.main()
