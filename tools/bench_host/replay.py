#!/usr/bin/env python3
"""Malloc + free of Weir against torch's own allocator, on the recorded sequence of a step of the 12-layer GPT, in one process
and in turns (replay.cc): one thread, and two. Median and 99th percentile over batches of 128 events; at most half of torch's.

Of each place in the step the quietest quarter of the passes counts: those in which both allocators together took least, so
that other load on the machine shows in neither. `all` gives the same of every batch. Two threads have no target: on two cores
they measure the machine. --json FILE writes the figures.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import recorded_step

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = 0.5
PLAY = "import ctypes, sys, torch; sys.exit(ctypes.CDLL(sys.argv[1]).bench_replay(sys.argv[2].encode(), int(sys.argv[3]), int(sys.argv[4])))"


def play(build: pathlib.Path, python: str, step: str, passes: int, threads: int) -> list:
    """[[torch's, Weir's nanoseconds an event]] of each batch, pass by pass, thread by thread."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    command = [str(build / "bin" / "weir"), "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "off",
               "--", python, "-c", PLAY, str(build / "lib" / "libbench_replay.so"), step, str(passes), str(threads)]
    done = subprocess.run(command, env=clean | {"WEIR_EMULATED_CHECKS": "off"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def quietest(batches: list, places: int) -> list:
    """The quarter of the passes that was quietest, of each place."""
    kept = []
    for place in range(places):
        passes = sorted(batches[place::places], key=sum)
        kept += passes[:len(passes) // 4 + 1]
    return kept


def ratios(batches: list) -> tuple:
    """Weir's in torch's: of the medians, of the 99th percentiles."""
    torchs, weirs = (sorted(column) for column in zip(*batches))
    at = len(batches) * 99 // 100
    return statistics.median(weirs) / statistics.median(torchs), weirs[at] / torchs[at]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--passes", type=int, default=400)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows, missed = [], False
    with tempfile.TemporaryDirectory() as folder:
        step = os.path.join(folder, "step.txt")
        recorded_step.write(step, options.build / "bin" / "weir", options.python)
        events = pathlib.Path(step).read_text().split("step\n")[1].count("\n")
        places = -(-events // 128)
        print(f"a step of {events} events; {options.runs} runs of {options.passes} passes")
        print(f"{'':<24}{'median':>9}{'p99':>9}")
        for threads in (1, 2):
            runs = [play(options.build, options.python, step, options.passes // threads, threads) for _ in range(options.runs)]
            for what, pick in (("quiet", lambda run: quietest(run, places)), ("all", lambda run: run)):
                median, p99 = (statistics.median(column) for column in zip(*(ratios(pick(run)) for run in runs)))
                late = threads == 1 and what == "quiet" and max(median, p99) > TARGET
                missed = missed or late
                rows.append({"threads": threads, "batches": what, "median": median, "p99": p99, "runs": len(runs)})
                print(f"{threads} thread{'s' if threads > 1 else ' '}, {what:<13}{median:>9.3f}{p99:>9.3f}{'  MISSED' if late else ''}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
