"""Checks Weir on this machine's GPU, without installation and without network, in under four minutes.

probe          what the driver does and costs (weir_gpu_probe)
conformance    the rules of CUDA that Weir relies on, each one test (weir_conformance)
demo           a small GPT, twice without Weir and once under a cap: the results must be identical
deterministic  the same with deterministic algorithms and a fixed cuBLAS workspace

Prints a table and writes a file of figures, anew after each stage. Exit code 0: every stage passed; 1: one did not;
2: wrong usage.
"""
import argparse
import json
import pathlib
import platform
import sys
import time
import traceback

import card_profile
import demo_stage
import driver_stages

ALL_STAGES = ("probe", "conformance", "demo", "deterministic")
LIMITS = {"probe": 90, "conformance": 45, "demo": 75, "deterministic": 75}  # seconds
TOTAL = 235


def run_stage(stage: str, options, limit: float) -> tuple:
    began = time.monotonic()
    left = lambda: limit - (time.monotonic() - began)
    try:
        if stage == "probe":
            return driver_stages.probe(options.gpu, limit)
        if stage == "conformance":
            return driver_stages.conformance(options.gpu, limit)
        return demo_stage.run(options.gpu, options.steps, stage == "deterministic", left)
    except Exception:  # a stage that dies is a line of the table
        return [f"the stage died: {line}" for line in traceback.format_exc().splitlines()[-4:]], {}, False


def write_profile(path: str, figures: dict) -> bool:
    try:
        pathlib.Path(path).write_text(card_profile.of_probe(figures))
    except (OSError, ValueError) as problem:
        print(f"== no profile in {path}: {problem}")
        return False
    print(f"== profile in {path}: weir run --gpu emulated:{pathlib.Path(path).resolve()} emulates this card")
    return True


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", default="real", help="real, or emulated[:PROFILE] to try this check without a GPU")
    parser.add_argument("--json", default="gpu_check.json", metavar="FILE", help="the file of figures")
    parser.add_argument("--profile", metavar="FILE", help="write a profile of the card for the emulated GPU (docs/profiles.md)")
    parser.add_argument("--steps", type=int, default=16, help="training steps of a run of the demo")
    parser.add_argument("--stages", default=",".join(ALL_STAGES), metavar="NAME,...")
    parser.add_argument("--patience", type=float, default=1, metavar="FACTOR", help="multiplies every time limit")
    options = parser.parse_args(arguments)
    options.stages = options.stages.split(",")
    if unknown := [stage for stage in options.stages if stage not in ALL_STAGES]:
        parser.error(f"--stages: {unknown[0]!r} is none of {', '.join(ALL_STAGES)}")
    if options.gpu.split(":")[0] not in ("real", "emulated"):
        parser.error("--gpu wants real or emulated[:PROFILE]")
    if options.profile and "probe" not in options.stages:
        parser.error("--profile needs the stage probe")
    if options.steps < 1 or options.patience <= 0:
        parser.error("--steps wants at least 1, --patience more than 0")
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    began = time.monotonic()
    file = {"gpu": options.gpu, "python": platform.python_version(), "system": platform.platform(), "stages": {}}
    for stage in options.stages:
        start = time.monotonic()
        limit = min(LIMITS[stage] * options.patience, TOTAL * options.patience - (start - began))
        lines, figures, passed = run_stage(stage, options, limit) if limit > 2 else (["no time was left"], {}, False)
        seconds = time.monotonic() - start
        print(f"== {stage}: {'passed' if passed else 'FAILED'}, {seconds:.1f} s")
        print("".join(f"   {line}\n" for line in lines), end="", flush=True)
        file["stages"][stage] = {"passed": passed, "seconds": round(seconds, 1), "figures": figures, "lines": lines}
        pathlib.Path(options.json).write_text(json.dumps(file, indent=1) + "\n")
    passed = all(result["passed"] for result in file["stages"].values())
    if options.profile:
        passed = write_profile(options.profile, file["stages"]["probe"]["figures"]) and passed
    print(f"{'PASSED' if passed else 'FAILED'} on {options.gpu} in {time.monotonic() - began:.0f} s; figures in {options.json}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
