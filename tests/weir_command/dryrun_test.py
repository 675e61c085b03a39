"""`weir dryrun`: what it gives the job, what it tells of what the job left, and its exit codes. The job writes the trace and the
figures itself here; tests/dryrun has real ones."""
import json
import os
import pathlib
import re
import signal
import sys

from installed_weir import WeirTestCase

TRACE_FOLDER = str(pathlib.Path(__file__).resolve().parents[1] / "trace")
MIB = 1 << 20
GIB = 1 << 30
FIGURES = {"device_name": "NVIDIA Test 2", "ended": 1, "vram_bytes": 8 * GIB, "context_bytes": GIB, "card_peak_bytes": 3 * GIB,
           "granted_beyond_card": 0, "reports": 0, "steps": 4, "step_ns": 12_500_000, "total_ns": 60_000_000, "values": "exact"}

# A parameter of 2 MiB and 6 MiB that nothing says anything of; the allocator counts more.
LEAVE = f"""
import os, sys, struct
sys.path.insert(0, {TRACE_FOLDER!r})
import wtr
KIND = {{name: number for number, name in enumerate(wtr.KINDS)}}
def record(kind, address=0, amount=0, number=0, detail=0):
    return wtr.RECORD.pack(1000, address, amount, number, 1, KIND[kind], detail)
def leave(figures, allocated=10 << 20, reserved=20 << 20, refused=0, name=None):
    "What a process leaves: `name` stands for the process id."
    def path(variable):
        return os.environ[variable].replace("%p", str(name or os.getpid()))
    records = [record("allocate", 0x1000, 2 << 20), record("op begin", number=1, amount=1),
               record("tensor", 0x1000, 2 << 20, detail=wtr.LEAF), record("allocate", 0x900000, 6 << 20),
               record("op end", number=1), record("peaks", allocated // 2, reserved // 2), record("peaks", allocated, reserved),
               *[record("out of memory", amount=1 << 30)] * refused, record("end")]
    with open(path("WEIR_TRACE"), "wb") as file:
        file.write(wtr.header() + wtr.frame(struct.pack("<IH", 1, 7) + b"aten::m", b"".join(records)))
    with open(path("WEIR_EMULATED_FIGURES"), "w") as file:
        file.writelines(f"{{key}} {{value}}\\n" for key, value in figures.items())
"""


class DryRunTest(WeirTestCase):
    def dry_run(self, program, *flags, **environment):
        return self.run_weir("dryrun", *flags, "--", sys.executable, "-S", "-c", LEAVE + program, PYTHONDONTWRITEBYTECODE="1",
                             **environment)

    def told(self, program, *flags, code=0):
        """The report of a job that runs `program`, as JSON."""
        done = self.dry_run(program, "--json", *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def rows(self, text):
        return [line.split() for line in text.splitlines()]


class JobTest(DryRunTest):
    def options(self, *flags, **environment):
        done = self.dry_run("import json; print(json.dumps(dict(os.environ))); leave(" + repr(FIGURES) + ")", *flags, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = json.loads(done.stdout)
        return {name: text for name, text in job.items() if name.startswith("WEIR_")
                and name not in ("WEIR_EMULATED_SHARED", "WEIR_EMULATED_REAL_DRIVER")}

    def test_without_a_cap_the_allocator_of_torch_is_watched(self):
        options = self.options("--gpu", "rtx3060-12g", WEIR_EMULATED_VRAM="2GiB", WEIR_DISABLE="1", WEIR_KERNELS="cpu")
        self.assertTrue(options.pop("WEIR_TRACE").endswith("/%p.wtr"))
        self.assertTrue(options.pop("WEIR_EMULATED_FIGURES").endswith("/%p.figures"))
        self.assertEqual(options, {"WEIR_GPU": "emulated:rtx3060-12g", "WEIR_KERNELS": "none", "WEIR_EMULATED_TIMING": "1",
                                   "WEIR_EMULATED_CONTEXT": "400MiB", "WEIR_EMULATED_OVERCOMMIT": "1", "WEIR_WATCH_NATIVE": "1",
                                   "WEIR_REQUIRED": "1", "WEIR_EMULATED_CHOSEN": "1", "WEIR_BESIDE_REAL_GPU": "1"})

    def test_with_a_cap_weir_runs(self):
        options = self.options("--vram", "20GiB")
        self.assertEqual((options["WEIR_GPU"], options["WEIR_VRAM"]), ("emulated:h200", "20GiB"))
        self.assertNotIn("WEIR_WATCH_NATIVE", options)
        self.assertNotIn("WEIR_EMULATED_OVERCOMMIT", options)

    def test_works_beside_a_real_driver(self):
        options = self.options(WEIR_EMULATED_REAL_DRIVER=str(self.weir))
        self.assertEqual((options["WEIR_GPU"], options["WEIR_EMULATED_CHOSEN"]), ("emulated:h200", "1"))

    def test_nothing_is_left_behind(self):
        folder = os.path.dirname(self.options("--gpu", "h100")["WEIR_TRACE"])
        self.assertTrue(folder)
        self.assertFalse(os.path.exists(folder))

    def test_arguments_output_and_input_are_the_jobs(self):
        done = self.dry_run(f"print(sys.argv[1:], sys.stdin.read()); leave({FIGURES})", "--gpu", "h100")
        self.assertEqual(done.stdout, "[] \n")
        self.assertIn("weir dryrun: NVIDIA Test 2 (h100)", done.stderr)


class ReportTest(DryRunTest):
    def test_text(self):
        done = self.dry_run(f"leave({FIGURES})", "--gpu", "rtx4090")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in ("weir dryrun: NVIDIA Test 2 (rtx4090), torch's own allocator",
                    "peak allocated 10.00 MiB torch.cuda.max_memory_allocated()",
                    "peak reserved 20.00 MiB torch.cuda.max_memory_reserved()", "exact", "parameter 2.00 MiB", "temporary 6.00 MiB",
                    "rounding 2.00 MiB", "fits yes: it needs 3.00 GiB and the card has 8.00 GiB",
                    "step 12.500 ms the median of 4; 60.000 ms in all"):
            self.assertIn(row.split(), self.rows(done.stderr), done.stderr)

    def test_json_on_stdout_and_the_jobs_output_on_stderr(self):
        done = self.dry_run(f"print('from the job', flush=True); leave({FIGURES})", "--json", "--gpu", "rtx4090", "--vram", "6GiB")
        self.assertEqual(done.stderr, "from the job\n")
        report = json.loads(done.stdout)
        self.assertGreater(report.pop("process"), 0)
        self.assertEqual(report, {
            "gpu": {"profile": "rtx4090", "name": "NVIDIA Test 2", "vram_bytes": 8 * GIB}, "cap": "6GiB",
            "memory": {"peak_allocated_bytes": 10 * MIB, "peak_reserved_bytes": 20 * MIB, "context_bytes": GIB, "at_peak": {
                "parameter": 2 * MIB, "gradient": 0, "optimizer": 0, "activation": 0, "input": 0, "temporary": 6 * MIB,
                "rounding": 2 * MIB}},
            "values": "exact", "value_reads": [], "fits": True, "needed_bytes": 3 * GIB,
            "step": {"count": 4, "median_ns": 12_500_000}, "total_ns": 60_000_000, "reports": 0, "processes": 1, "exit_code": 0})

    def test_file(self):
        done = self.dry_run(f"print('from the job'); leave({FIGURES})", "-o", "told.txt")
        self.assertEqual((done.stdout, done.stderr), ("from the job\n", ""))
        self.assertIn("NVIDIA Test 2", (self.folder / "told.txt").read_text())

    def test_places_that_make_an_estimate_are_named(self):
        for verdict, words in (("estimate", "an estimate: values that were not computed were read by aten::nonzero at a b.py:61"),
                               ("exact-unless-floats-decide", "exact, unless a float decides something (read by aten::nonzero at a b.py:61)")):
            figures = {**FIGURES, "values": verdict, "read": "0 aten::nonzero at a b.py:61"}
            self.assertIn(words, self.dry_run(f"leave({figures})").stderr)
            report = self.told(f"leave({figures})")
            self.assertEqual((report["values"], report["value_reads"]), (verdict, ["aten::nonzero at a b.py:61"]))

    def test_process_that_needs_most_is_told(self):
        more = {**FIGURES, "card_peak_bytes": 5 * GIB}
        report = self.told(f"leave({FIGURES}, name=1); leave({more}, allocated=70 << 20, name=2); leave({FIGURES}, name=3)")
        self.assertEqual((report["processes"], report["needed_bytes"], report["memory"]["peak_allocated_bytes"]), (3, 5 * GIB, 70 * MIB))

    def test_killed_job_is_told_until_then(self):
        started = {**FIGURES, "ended": 0, "steps": 0, "step_ns": 0, "total_ns": 0}
        kill = f"leave({started}); import signal; os.kill(os.getpid(), signal.SIGKILL)"
        report = self.told(kill, code=128 + signal.SIGKILL)
        self.assertEqual((report["values"], report["step"], report["total_ns"], report["exit_code"]), (None, None, None, 137))
        text = self.dry_run(kill).stderr
        self.assertIn("not known: the process was killed", text)
        self.assertIn("the job failed with exit code 137", text)


class FitTest(DryRunTest):
    def fits(self, figures, code, more="", after="", flags=()):
        report = self.told(f"leave({ {**FIGURES, **figures} }{more}){after}", *flags, code=code)
        return report["fits"], report["needed_bytes"]

    def test_the_fullest_moment_of_the_card_decides(self):
        self.assertEqual(self.fits({"card_peak_bytes": 8 * GIB}, 0), (True, 8 * GIB))
        self.assertEqual(self.fits({"card_peak_bytes": 8 * GIB + 1}, 3), (False, 8 * GIB + 1))

    def test_what_the_allocator_reserved_and_the_context_count_at_least(self):
        self.assertEqual(self.fits({"vram_bytes": 2 * GIB, "card_peak_bytes": 0}, 3, f", reserved={GIB + 1}"), (False, 2 * GIB + 1))

    def test_lent_memory_does_not_fit(self):
        self.assertEqual(self.fits({"granted_beyond_card": 1}, 3)[0], False)

    def test_size_that_would_do_is_said(self):
        figures = {**FIGURES, "card_peak_bytes": 25 * GIB, "granted_beyond_card": 3}
        self.assertIn("no: it needs 25.00 GiB and the card has 8.00 GiB", self.dry_run(f"leave({figures})").stderr)

    def test_cap_that_is_too_small(self):
        program = f"leave({FIGURES}, refused=1); sys.exit(1)"
        done = self.dry_run(program, "--vram", "1GiB")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no: the job ended with an out-of-memory error under the cap of 1GiB", done.stderr)
        self.assertEqual(self.told(f"leave({FIGURES}, refused=1)", "--vram", "1GiB")["fits"], True)  # the job came through

    def test_job_that_fails_keeps_its_code(self):
        report = self.told(f"leave({FIGURES}); sys.exit(42)", code=42)
        self.assertEqual((report["fits"], report["exit_code"]), (True, 42))


class RefusalTest(DryRunTest):
    def refused(self, code, *parts, flags=(), command=("touch", "started"), **environment):
        self.assert_refused(self.run_weir("dryrun", *flags, "--", *command, **environment), code, *parts)

    def test_bad_options(self):
        self.refused(2, '--gpu: "h9"', "h200, h100, a100-80g, rtx4090, rtx3060-12g", flags=("--gpu", "h9"))
        self.refused(2, "--vram", '"12xx"', flags=("--vram", "12xx"))
        self.refused(2, "--ram", flags=("--ram", "1GiB"))
        self.refused(2, "--gpu= needs a value", flags=("--gpu=",))
        self.refused(2, "no command", command=())

    def test_command_that_is_not_there(self):
        self.refused(127, "nosuch", command=("nosuch",))

    def test_no_room_for_files(self):
        self.refused(1, "TMPDIR", TMPDIR="/nowhere")

    def test_torch_that_weir_does_not_know(self):
        done = self.run_weir("dryrun", "--", sys.executable, "-c", "open('started', 'w')", **self.make_torch("2.3.0"))
        self.assert_refused(done, 4, "2.3.0")

    def test_job_that_does_not_use_the_card(self):
        done = self.run_weir("dryrun", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(re.findall(r"weir dryrun: .*", done.stderr), ["weir dryrun: the command has not used the card: there is nothing to tell"])
        self.assertEqual(self.run_weir("dryrun", "--", "sh", "-c", "exit 7").returncode, 7)

    def test_trace_that_cannot_be_read(self):
        done = self.dry_run("open(os.environ['WEIR_TRACE'].replace('%p', '1'), 'w').write('x' * 500)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1.wtr", done.stderr)
