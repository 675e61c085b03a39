"""Runs the tests of one stage after tools/setup has built them; use it through tools/test.

quick   unit tests and tidy checks
ci      quick, the same under sanitizers, the tests on the emulated GPU, and each end-to-end program once with its
        matrix sampled by a seed
full    ci with whole matrices, and on every torch that Weir is built for
soak    full, then the long random tests
gpu     what needs a real GPU; skipped, with the reason, where there is none

Torch 2.11 is tested where its environment is there (tools/setup --torch 2.11), else it is named as skipped.
Each runner prints its own results; they are summed up at the end. Exit code 0: everything passed, 1: something failed or
nothing ran, 2: wrong usage.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PYTHON = ROOT / ".venv" / "bin" / "python"
OTHER_TORCH = "2.11"
STAGES = ("quick", "ci", "full", "soak", "gpu")
BUDGET_MINUTES = {"quick": 3, "ci": 15, "full": 120, "soak": 480, "gpu": 10}  # warm; ci is 40 from a fresh clone


class Suite:
    """One runner's share of a stage: a name, a command, and how to list it."""

    def __init__(self, name, command, listing, prepare=()):
        self.name, self.command, self.listing, self.prepare = name, command, listing, prepare

    def run(self):
        """Returns (passed, summary line)."""
        for step in self.prepare:
            print(f"tools/test: {self.name}: {' '.join(map(str, step))}", flush=True)
            if subprocess.run(step, cwd=ROOT, stdin=subprocess.DEVNULL).returncode != 0:
                return False, "could not be built"
        summary = ""
        with subprocess.Popen(self.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              errors="replace") as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                if re.search(r"\d+ passed|tests passed|No tests were found", line):
                    summary = line.strip()
        passed = process.returncode == 0
        return passed, summary or ("passed" if passed else f"exit code {process.returncode}")


def ctest(name, folder, select, names, prepare=()):
    """The tests that ctest knows in a build folder, chosen by label (-L, -LE) and name."""
    command = ["ctest", "--test-dir", str(folder), "-j", str(os.cpu_count() or 1), *select]
    if names:
        command += ["-R", "|".join(names)]
    return Suite(name, command + ["--output-on-failure", "--no-tests=error"], command + ["-N"], prepare)


def sanitizer(preset, names, labels="^unit$"):
    configure = ["cmake", "--preset", preset, "-DWEIR_PYTHON=" + str(PYTHON)]
    build = ["cmake", "--build", "--preset", preset]
    return ctest(preset, BUILD / preset, ["-L", labels], names, (configure, build))


def programs(stage, seed, names):
    command = [str(PYTHON), "tests/programs/run.py", "--stage", stage, "--seed", str(seed)]
    return Suite("programs", command + names, command + ["--list"] + names)


def has_other_torch():
    return (ROOT / f".venv-{OTHER_TORCH}" / "bin" / "python").exists()


def programs_on_other_torch(stage, seed, names):
    """Cells drawn by the seed; stage ci is content with one program."""
    command = [str(PYTHON), "tests/programs/run.py", "--torch", OTHER_TORCH, "--seed", str(seed), "--stage",
               "quick" if stage == "ci" and not names else "ci"]
    return Suite(f"torch {OTHER_TORCH}", command + names, command + ["--list"] + names)


def program_names():
    """Names of the end-to-end programs, so that NAME can mean a program or a test."""
    listing = subprocess.run([str(PYTHON), "tests/programs/run.py", "--stage", "full", "--list"], cwd=ROOT, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    return {line.split()[0] for line in listing.splitlines()[1:] if line.strip()}


def has_test(suite):
    """Whether a ctest suite has a test of the names given (its build is there)."""
    listing = subprocess.run(suite.listing, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return "Total Tests: 0" not in listing


def suites_of(stage, seed, names):
    chosen_programs = [name for name in names if name in program_names()] if names else []
    chosen_tests = [name for name in names if name not in chosen_programs]
    suites = []
    if not names or chosen_tests:
        label = {"quick": ["-L", "^(unit|tidy)$"], "gpu": ["-L", "^gpu$"], "soak": ["-LE", "^gpu$"],
                 "ci": ["-LE", "^(gpu|soak|full)$"]}
        suites.append(ctest("tests", BUILD, label.get(stage, ["-LE", "^(gpu|soak)$"]), chosen_tests))
    if stage in ("ci", "full", "soak") and not names:
        labels = "^unit$" if stage == "ci" else "^(unit|random)$"
        suites += [sanitizer(preset, [], labels) for preset in ("asan", "tsan")]
    if stage in ("ci", "full", "soak") and (not names or chosen_programs):
        suites.append(programs("ci" if stage == "ci" else "full", seed, chosen_programs))
        if has_other_torch():
            suites.append(programs_on_other_torch(stage, seed, chosen_programs))
    return [suite for suite in suites if not chosen_tests or suite.name == "programs" or has_test(suite)]


def gpu_reason():
    """Why there is no real GPU to test on; empty if there is one."""
    check = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); " \
            "assert d.cuInit(0) == 0 and d.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value"
    found = subprocess.run([sys.executable, "-c", check], stderr=subprocess.DEVNULL).returncode == 0
    return "" if found else "no NVIDIA driver or no device"


def default_seed():
    """The same sample for the same commit: a failure in CI can be repeated without looking for its seed."""
    head = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()
    return int(head, 16) if head else 1


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tools/test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", choices=STAGES, default="ci")
    parser.add_argument("--seed", type=int, default=None, help="which cells of the matrices stage ci runs; printed")
    parser.add_argument("--list", action="store_true", help="list what would run, run nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: programs by name, tests by a part of it")
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    seed = options.seed if options.seed is not None else default_seed()
    print(f"tools/test: stage {options.stage}, budget {BUDGET_MINUTES[options.stage]} min, seed {seed}", flush=True)
    if options.stage == "gpu" and gpu_reason():
        print(f"tools/test: stage gpu skipped: {gpu_reason()}")
        return 0
    if not has_other_torch() and options.stage in ("ci", "full", "soak"):
        print(f"tools/test: torch {OTHER_TORCH} skipped: no .venv-{OTHER_TORCH} (tools/setup --torch {OTHER_TORCH})")
    suites = suites_of(options.stage, seed, options.names)
    if options.list:
        for suite in suites:
            print(f"== {suite.name}", flush=True)
            subprocess.run(suite.listing, cwd=ROOT, stdin=subprocess.DEVNULL)
        return 0
    start, results = time.monotonic(), []
    for suite in suites:
        print(f"tools/test: {suite.name}", flush=True)
        began = time.monotonic()
        results.append((suite.name, *suite.run(), time.monotonic() - began))
    print(f"tools/test: stage {options.stage}, seed {seed}, {(time.monotonic() - start) / 60:.1f} min of "
          f"{BUDGET_MINUTES[options.stage]}")
    for name, passed, summary, seconds in results:
        print(f"  {'ok  ' if passed else 'FAIL'} {name:<10} {seconds:6.1f} s  {summary}")
    if not results:
        print("  FAIL nothing ran")
    return 0 if results and all(result[1] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
