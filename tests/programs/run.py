#!/usr/bin/env python3
"""Runs the programs of this folder without Weir, with Weir and no cap, and under caps; compares their results.

Every program runs on the emulated GPU. Prints a line per run and, for a failed one, the command that repeats it.
Ends with `N passed, N failed`. Exit code 0: all passed, 1: some failed or nothing ran, 2: wrong usage.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import time

import checks
import matrix

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# cuBLAS workspaces are raw allocations that can never leave; by default (32 MiB on Hopper, for each stream) they would be
# half of what these small jobs need.
WORKSPACES = {"CUBLAS_WORKSPACE_CONFIG": ":4096:1", "CUBLASLT_WORKSPACE_SIZE": "1024"}
# Torch 2.11 makes one for the handle of each thread and one more for cuBLASLt, with kernels `none` too.
WORKSPACES_OF_OTHERS = {"2.11": {"CUBLAS_WORKSPACE_CONFIG": ":16:1", "CUBLASLT_WORKSPACE_SIZE": "16"}}


@dataclasses.dataclass
class Run:
    """A finished process."""
    command: str
    code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False


class Runner:
    def __init__(self, options):
        self._weir = pathlib.Path(options.weir)
        self._python, self._packages = options.python, options.packages
        self._suffix = "" if options.torch is None else "_" + options.torch.replace(".", "_")  # of compiled programs
        self._workspaces = WORKSPACES_OF_OTHERS.get(options.torch, WORKSPACES)
        self._threads = max(1, (os.cpu_count() or 1) // options.jobs)

    def command(self, program, cell, cap: int, card: int) -> tuple:
        """Environment additions and argument list for one run. `cap` and `card` in bytes, 0 for none."""
        environment = {"WEIR_LOG": "info", "OMP_NUM_THREADS": str(self._threads), **self._workspaces}
        arguments = [str(self._weir), "run", "--gpu", program.gpu, "--beside-real-gpu", "--kernels", cell.kernels]
        if card or program.card:
            environment["WEIR_EMULATED_VRAM"] = str(card) if card else program.card
        if cell.kind == "natural":
            environment["WEIR_DISABLE"] = "1"
        elif cell.kind == "uncapped":
            arguments += ["--vram", "off"]
        elif cell.kind == "capped":
            arguments += ["--vram", str(cap), "--policy", cell.policy]
            arguments += ["--ram", program.ram] if program.ram else []
        if program.script.endswith(".py"):
            job = [self._packages if program.packages else self._python, os.path.relpath(HERE / program.script), *program.args]
        else:
            job = [str(self._weir.parent / (program.script + self._suffix)), *program.args]
        return environment, arguments + ["--"] + job

    def run(self, program, cell, cap: int = 0, card: int = 0) -> Run:
        environment, arguments = self.command(program, cell, cap, card)
        text = " ".join([f"{key}={value}" for key, value in environment.items()] + [shlex.join(arguments)])
        start, timed_out = time.monotonic(), False
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
        process = subprocess.Popen(arguments, env={**clean, **environment}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        try:
            stdout, stderr = process.communicate(timeout=program.seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)  # the group that this call started
            stdout, stderr = process.communicate()
        return Run(text, process.returncode, stdout, stderr, time.monotonic() - start, timed_out)


class Report:
    """Prints outcomes as they come and counts them."""

    def __init__(self, verbose: bool):
        self.passed, self.failed, self._verbose = 0, 0, verbose

    def add(self, program, cell, run, found: list) -> None:
        evictions = sum(figures.get("evictions", 0) for figures in checks.weir_figures(run.stderr))
        more = f"  {evictions} evictions" if evictions else ""
        print(f"{'FAIL' if found else 'ok  '} {program.name:<22} {str(cell):<28} {run.seconds:5.1f} s{more}", flush=True)
        self.passed, self.failed = self.passed + (not found), self.failed + bool(found)
        if not found and not self._verbose:
            return
        for sentence in found:
            print(f"     {sentence}")
        print(f"     repeat: {run.command}")
        tail = run.stderr.strip().splitlines()[-(12 if found else 3):]
        print("\n".join(f"     | {line}" for line in tail), flush=True)


def run_program(runner, program, cells) -> list:
    """All runs of one program, the natural one first; a list of (cell, run, problems)."""
    outcomes = []
    first = matrix.Cell("natural", "none" if program.expects == "fits" else "cpu")
    run = runner.run(program, first)
    natural = checks.result_of(run.stdout)
    found = checks.problems(program, first, run, natural, 0)
    if not found and not natural.get("peak_allocated_bytes"):
        found = ["torch.cuda knows no peak: this was no run on the emulated GPU"]
    outcomes.append((first, run, found))
    if found:  # nothing to compare with
        return outcomes
    peak = natural["peak_allocated_bytes"]
    for cell in cells:
        card = int(peak / 1.5) if cell.kind == "small card" else 0
        cap = (program.cap or int(peak * cell.share)) if cell.kind == "capped" else 0
        if card:
            outcomes.append(refused_without_weir(runner, program, card))
        run = runner.run(program, cell, cap, card)
        outcomes.append((cell, run, checks.problems(program, cell, run, natural, cap)))
    return outcomes


def refused_without_weir(runner, program, card: int) -> tuple:
    """The job must not fit on the small card by itself, or the run with Weir shows nothing."""
    cell = matrix.Cell("natural")
    run = runner.run(program, cell, card=card)
    fails = run.code != 0 and "OutOfMemoryError" in run.stderr
    return cell, run, [] if fails else [f"should run out of memory on a card of {card} bytes, exit code {run.code}"]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", choices=("quick", "ci", "full"), default="ci")
    parser.add_argument("--seed", type=int, default=None, help="draws the cells of stage ci; printed")
    parser.add_argument("--kernels", choices=("cpu", "none", "both"), default="both")
    parser.add_argument("--list", action="store_true", help="list programs and cells, run nothing")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every command")
    parser.add_argument("--weir", default=os.path.relpath(ROOT / "build" / "bin" / "weir"))
    parser.add_argument("--python", help="instead of the environment's")
    parser.add_argument("--torch", metavar="MINOR", help="another torch than the default one, such as 2.11 (tools/setup --torch)")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    environment = f".venv-{options.torch}" if options.torch else ".venv"
    options.packages = options.python or os.path.relpath(ROOT / ".venv-programs" / "bin" / "python")
    options.python = options.python or os.path.relpath(ROOT / environment / "bin" / "python")
    unknown = set(options.names) - {program.name for program in matrix.PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))} (--list shows them)")
    if options.jobs < 1:
        parser.error("-j wants at least 1")
    if not options.list and not os.access(options.weir, os.X_OK):
        parser.error(f"{options.weir} is not there: build first, or name it with --weir")
    if not options.list and not os.access(options.python, os.X_OK):
        parser.error(f"{options.python} is not there (tools/setup{f' --torch {options.torch}' if options.torch else ''})")
    return options


def main(arguments=None) -> int:
    options = parse(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    chosen = [(matrix.on_torch(options.torch, program), cells)
              for program, cells in matrix.choose(options.stage, seed, options.kernels, options.names)]
    print(f"programs: stage {options.stage}, seed {seed} (repeat with --seed {seed})", flush=True)
    if options.torch:
        for name in [program.name for program, _ in chosen if program.packages]:
            print(f"skipped: {name} imports packages that are there for the default torch only")
        chosen = [(program, cells) for program, cells in chosen if not program.packages]
    if options.list:
        for program, cells in chosen:
            print(f"{program.name:<22} natural, {', '.join(map(str, cells))}")
        return 0
    runner, report = Runner(options), Report(options.verbose)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run_program, runner, program, cells): program for program, cells in chosen}
        for job in concurrent.futures.as_completed(jobs):
            for cell, run, found in job.result():
                report.add(jobs[job], cell, run, found)
    print(f"{report.passed} passed, {report.failed} failed")
    return 0 if report.passed and not report.failed else 1


if __name__ == "__main__":
    sys.exit(main())
