#!/usr/bin/env python3
"""Host cost of Weir with no cap, against the same process without it, in paired runs that take turns.

  compare.py step     a training step of a 12-layer GPT with kernels `none`: at most 1.05 times (and, from the same
                      runs, peak frames / peak requested bytes: at most 1.10)
  compare.py frames   the second of these alone: the same on every machine, so it is also a test
  compare.py malloc   a malloc + free pair through torch's allocator interface: at most 1.0 times
  compare.py emulator the same step without Weir, on the emulated GPU with lazy streams and checks against the eager one
                      without checks: at most 3 times
  compare.py trace    the same step with Weir, with a trace against without one: at most 1.02 times, and at most 40 bytes an event

Prints a table and exits 1 if a target is missed. Times are wall-clock: use a quiet machine. --json FILE writes the figures.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = {"step": 1.05, "malloc": 1.0, "frames": 1.10, "emulator": 3.0, "trace": 1.02}
MOST_BYTES_PER_EVENT = 40
PLAIN_EMULATOR = {"WEIR_EMULATED_STREAMS": "eager", "WEIR_EMULATED_CHECKS": "off"}


def run(weir: pathlib.Path, job: list, disabled: bool, more: dict) -> tuple:
    """The JSON line of a run and the figures of Weir's exit line ({} when disabled). `more` is added to the environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    environment.update({"WEIR_LOG": "info", **({"WEIR_DISABLE": "1"} if disabled else {}), **more})
    command = [str(weir), "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "off", "--", *job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    line = re.search(r"^weir: exit (.*)$", done.stderr, re.M)
    figures = dict(pair.split("=", 1) for pair in line.group(1).split()) if line else {}
    if disabled == bool(figures):
        raise SystemExit(f"{' '.join(command)}: Weir was {'there' if disabled else 'not there'}")
    return json.loads(done.stdout.strip().splitlines()[-1]), figures


def variants(kind, trace):
    """{plain: (Weir disabled, additions to the environment)} of the two runs of a pair, the plain one first."""
    if kind == "emulator":
        return {True: (True, PLAIN_EMULATOR), False: (True, {})}
    if kind == "trace":
        return {True: (False, {}), False: (False, {"WEIR_TRACE": trace})}
    return {True: (True, {}), False: (False, {})}


def pairs(weir, job, count, kind, trace):
    """(without, with, exit line) for `count` pairs, which take turns in who is first."""
    choice = variants(kind, trace)
    for index in range(count):
        runs = {plain: run(weir, job, *choice[plain]) for plain in ((True, False) if index % 2 else (False, True))}
        print(f"  pair {index + 1} of {count}", file=sys.stderr, flush=True)
        yield runs[True][0], runs[False][0], runs[False][1]


def rows(kind: str, results: list) -> list:
    """(what, without, with, ratio, target): medians, and the median of the paired ratios."""
    def row(name, pick, target):
        without, weir = [pick(a) for a, _, _ in results], [pick(b) for _, b, _ in results]
        ratio = statistics.median(b / a for a, b in zip(without, weir))
        return name, statistics.median(without), statistics.median(weir), ratio, target
    if kind == "malloc":
        return [row(f"{case} {key}", lambda r, c=case, k=key: r[c][k], TARGETS["malloc"] if key == "median_ns" else None)
                for case in results[0][0] for key in ("median_ns", "p99_ns")]
    if kind in ("emulator", "trace"):
        return [row("step, ms", lambda r: 1000 * r["step_seconds"], TARGETS[kind])]
    frames = [int(figures["peak_frames"]) for _, _, figures in results]
    asked = [int(figures["peak_requested"]) for _, _, figures in results]
    steps = [] if kind == "frames" else [row("step, ms", lambda r: 1000 * r["step_seconds"], TARGETS["step"])]
    return [*steps,
            ("requested -> frames, MiB", asked[0] / 2**20, frames[0] / 2**20, max(f / a for f, a in zip(frames, asked)),
             TARGETS["frames"])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=tuple(TARGETS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build" / "bin" / "weir")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    step = [options.python, str(ROOT / "tools" / "bench_host" / "gpt_step.py")]
    job = {"step": step, "emulator": step, "trace": step, "frames": [*step, "6"],
           "malloc": [str(options.weir.parent / "bench_malloc")]}[options.kind]
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "job.wtr")
        table = rows(options.kind, list(pairs(options.weir, job, 1 if options.kind == "frames" else options.pairs, options.kind,
                                               trace)))
        if options.kind == "trace":
            size = json.loads(subprocess.run([options.weir, "trace", trace, "--json"], capture_output=True, check=True).stdout)
            table.append(("bytes an event", 0, size["bytes_per_event"], size["bytes_per_event"], MOST_BYTES_PER_EVENT))
    with_what = {"emulator": "checks", "trace": "trace"}.get(options.kind, "Weir")
    print(f"{'':<26}{'without':>11}{'with ' + with_what:>11}{'ratio':>8}{'target':>8}")
    missed = 0
    for name, without, weir, ratio, target in table:
        verdict = "" if target is None else "  ok" if ratio <= target else "  MISSED"
        missed += verdict == "  MISSED"
        print(f"{name:<26}{without:>11.1f}{weir:>11.1f}{ratio:>8.3f}{'' if target is None else f'{target:.2f}':>8}{verdict}")
    if options.json:
        keys = ("name", "without", "with_weir", "ratio", "target")
        pathlib.Path(options.json).write_text(json.dumps([dict(zip(keys, row)) for row in table], indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
