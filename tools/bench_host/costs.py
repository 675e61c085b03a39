#!/usr/bin/env python3
"""What Weir's own work takes on the host, piece by piece: the weir_*_us of the profiles of the emulated GPU, which its clock
charges (docs/virtual-clock.md).

  costs.py            measures them and prints each beside its constant
  costs.py --check    fails when a piece is over 20 % slower than its constants (`python tools/bench_host --check` too)

Nothing is compared in seconds. Each piece runs in turns with two pieces of torch's own (ops.cc), and the constants are multiples of
these, times what they took on the machine of the profile: REFERENCES_NS. A busy machine slows code of one kind more than code
of another, so the smaller of the two figures counts: slower code shows in both. Of each run the quietest quarter counts, of
the runs the median. --json FILE writes the figures.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSTANTS = ROOT / "tools" / "emulated_gpu" / "device" / "known_profiles.cc"
REFERENCES_NS = {"torch_pair": 515, "torch_op": 15.6}  # on an AMD EPYC, when nothing else ran
SLOWER = 1.2
OPS = "import ctypes, sys, torch; sys.exit(ctypes.CDLL(sys.argv[1]).bench_ops(int(sys.argv[2])))"

# What is measured, as the constants make it up.
MADE_OF = {
    "torch_malloc": {"torch_malloc_us": 1}, "torch_free": {"torch_free_us": 1},
    "weir_malloc": {"weir_malloc_us": 1}, "weir_free": {"weir_free_us": 1},
    "op_of_1": {"weir_op_us": 1, "weir_touch_us": 1}, "op_of_3": {"weir_op_us": 1, "weir_touch_us": 3},
    "event": {"weir_event_us": 1},
    "moves_of_64": {"weir_page_in_us": 2, "weir_candidate_us": 64},
    "moves_of_1024": {"weir_page_in_us": 2, "weir_candidate_us": 1024},
}
# How often a piece tells the emulated GPU of itself, which it would not do elsewhere.
TELLS = {"weir_malloc": 1, "weir_free": 1, "op_of_1": 2, "op_of_3": 2, "event": 1}


def constants_of(measured: dict) -> dict:
    """The other way around, in the unit of `measured`."""
    touch = (measured["op_of_3"] - measured["op_of_1"]) / 2
    candidate = (measured["moves_of_1024"] - measured["moves_of_64"]) / (1024 - 64)
    return {"torch_malloc_us": measured["torch_malloc"], "torch_free_us": measured["torch_free"],
            "weir_op_us": measured["op_of_1"] - touch, "weir_event_us": measured["event"], "weir_touch_us": touch,
            "weir_malloc_us": measured["weir_malloc"], "weir_free_us": measured["weir_free"],
            "weir_page_in_us": (measured["moves_of_64"] - 64 * candidate) / 2, "weir_candidate_us": candidate}


def run(build: pathlib.Path, python: str, rounds: int) -> dict:
    """One run: costs in each reference, and the references in nanoseconds."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    command = [str(build / "bin" / "weir"), "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "64GiB",
               "--", python, "-c", OPS, str(build / "lib" / "libbench_ops.so"), str(rounds)]
    # Without the emulator's own observer.
    done = subprocess.run(command, env=clean | {"WEIR_EMULATED_CHECKS": "off"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def median_of(runs: list) -> dict:
    """Microseconds of the machine of the profile, without what telling takes."""
    def told_in(index, reference_ns):
        medians = {key: statistics.median(run[key][index] for run in runs) for key in (*MADE_OF, "telling")}
        return {key: (medians[key] - TELLS.get(key, 0) * medians["telling"]) * reference_ns / 1000 for key in MADE_OF}
    both = [told_in(index, reference_ns) for index, reference_ns in enumerate(REFERENCES_NS.values())]
    return {key: min(told[key] for told in both) for key in MADE_OF}


def constants_of_profile() -> dict:
    """Microseconds, of the table that the emulator is built from."""
    return {key: float(value) for key, value in re.findall(r"^((?:weir|torch)_\w+_us) ([\d.]+)", CONSTANTS.read_text(), re.M)}


def check(measured: dict, constants: dict) -> list:
    """(what, microseconds by the constants, microseconds measured, whether that is too slow): torch's own is only told."""
    rows = []
    for what, parts in MADE_OF.items():
        expected = sum(count * constants[key] for key, count in parts.items())
        rows.append((what, expected, measured[what], what not in ("torch_malloc", "torch_free") and
                     measured[what] > SLOWER * expected))
    return rows


def print_row(what: str, constant: float, measured: float, verdict: str = ""):
    print(f"{what:<20}{constant:>10.3f}{measured:>10.3f}{measured / constant:>8.2f}{verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=400, help="of each run")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    runs = [run(options.build, options.python, options.rounds) for _ in range(options.runs)]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(runs, indent=1) + "\n")
    measured, constants = median_of(runs), constants_of_profile()
    for name, there in REFERENCES_NS.items():
        print(f"{name}: {statistics.median(run[name] for run in runs):.1f} ns here, {there} ns where the constants are from")
    print("Microseconds of there:")
    print(f"{'':<20}{'constant':>10}{'measured':>10}{'ratio':>8}")
    if not options.check:
        for key, value in constants_of(measured).items():
            print_row(key, constants[key], value)
        return 0
    slower = 0
    for what, expected, found, too_slow in check(measured, constants):
        slower += too_slow
        print_row(what, expected, found, "" if not too_slow else f"  SLOWER than {SLOWER} times its constants")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
