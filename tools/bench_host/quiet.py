#!/usr/bin/env python3
"""A job that fits: what Weir costs under a cap that is never reached, once the first steps are over (R6).

The step of the 12-layer GPT (gpt_step.py), kernels `none`, on the emulated H200: without Weir, under a cap of twice its peak, and
under one of 1.04 times its peak. Under both, from the tenth step on, nothing is observed, started, copied or asked of
the driver; the step of the virtual clock is at most 1.005 times the one without Weir, and in wall time (pairs that take
turns) at most 1.05 times. Prints a table and exits 1 if anything is missed. --json FILE writes the figures.
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
HERE = pathlib.Path(__file__).resolve().parent
IDLE = ("ops_observed", "threads_started", "copies", "driver_calls_steady")
TARGETS = {"virtual": 1.005, "wall": 1.05}
JOB = """
import json, statistics, sys, time
import gpt_step
from torch_weir import _core
step, count, times = gpt_step.steps(), int(sys.argv[1]), []
for _ in range(9):
    next(step)
observed = _core._own_stats(0).get("weir/ops_observed", 0)
for _ in range(count):
    start = time.perf_counter()
    next(step)
    times.append(time.perf_counter() - start)
print(json.dumps({"wall": statistics.median(times), "ops_observed": _core._own_stats(0).get("weir/ops_observed", 0) - observed}))
"""


def run(options, cap) -> dict:
    """The figures of a run; `cap` in bytes, "off", or None: without Weir."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    environment |= {"WEIR_LOG": "info", "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT / 'python'}"}
    environment |= {"WEIR_DISABLE": "1"} if cap is None else {}
    command = [str(options.weir), "run", "--gpu", "emulated:h200", "--beside-real-gpu", "--kernels", "none", "--timing", "--vram",
               "off" if cap in (None, "off") else str(cap), "--", options.python, "-c", JOB, str(options.steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    line = re.search(r"^weir: exit (.*)$", done.stderr, re.M)
    figures = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line[1])} if line else {}
    return figures | json.loads(done.stdout.strip().splitlines()[-1]) | {
        "virtual": float(re.search(r"timing: step ([\d.]+) ms", done.stderr)[1])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build" / "bin" / "weir")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    peak = run(options, "off")["peak_frames"]
    rows, missed = [], False
    for what, cap in (("twice the peak", 2 * peak), ("1.04 times the peak", peak * 26 // 25)):
        pairs = []
        for index in range(options.pairs):
            pair = {weir: run(options, cap if weir else None) for weir in ((True, False) if index % 2 else (False, True))}
            pairs.append((pair[False], pair[True]))
        row = {"cap": what, **{key: max(weir[key] for _, weir in pairs) for key in IDLE},
               **{key: statistics.median(weir[key] / native[key] for native, weir in pairs) for key in TARGETS}}
        late = [key for key in TARGETS if row[key] > TARGETS[key]] + [key for key in IDLE if row[key] != 0]
        rows.append(row)
        missed = missed or bool(late)
        print(f"cap {what}: step {row['virtual']:.4f} (virtual), {row['wall']:.3f} (wall); "
              + ", ".join(f"{key}={row[key]}" for key in IDLE) + (f"  MISSED: {', '.join(late)}" if late else ""), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
