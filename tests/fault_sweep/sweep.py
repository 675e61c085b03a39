#!/usr/bin/env python3
"""Weir under faults: a small capped training job in which the Nth driver call of a kind fails, for many N.

Usage: weir run --gpu emulated --vram CAP -- sweep.py [--every | --sample SEED] [--but CALL | CALL ...]

Each run must end with exactly the results of the run without faults, or with a Python exception that says what failed.
Wrong bytes, a report of the emulated GPU, death by a signal and a run that does not end are failures. torch is
imported once; every run is a child that forks before CUDA starts. With no CALL named it also tries random plans
(`seed:N`), a teardown in which every call fails, and a device smaller than the cap. Exit code 0: all passed.
"""
import argparse
import gc
import hashlib
import os
import random
import re
import select
import shutil
import signal
import sys
import tempfile

import torch
import torch._dynamo  # what the first step of an optimizer imports, two seconds of each child otherwise

# What each call may answer on hardware when it fails.
CALLS = {
    "cuMemCreate": "OUT_OF_MEMORY", "cuMemMap": "OUT_OF_MEMORY", "cuMemSetAccess": "NOT_READY", "cuMemUnmap": "UNKNOWN",
    "cuMemcpyDtoHAsync": "LAUNCH_FAILED", "cuMemcpyHtoDAsync": "LAUNCH_FAILED", "cuEventRecord": "UNKNOWN",
    "cuMemHostAlloc": "OUT_OF_MEMORY",
}
NEVER = 1_000_000_000
SAMPLES = {"once": 3, "forever": 1}  # numbers of each call
RANDOM_PLANS = 20
LIMIT_SECONDS = 60
FAILED_CLEARLY = 3


def job() -> str:
    """Two steps of a perceptron whose weights, gradients and moments are four times the cap; a digest of all results."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(*[torch.nn.Linear(768, 768) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    digest = hashlib.sha256()
    for _ in range(2):
        loss = model(torch.randn(64, 768).pin_memory().to("cuda", non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        digest.update(loss.detach().cpu().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


class Run:
    """One child: how it ended, its digest ("" if it has none) and what it wrote on stderr."""

    def __init__(self, plan: str, folder: str):
        path = plan if plan.startswith("seed:") else os.path.join(folder, "plan.txt")
        if path != plan:
            with open(path, "w") as file:
                file.write(plan + "\n")
        reader, writer = os.pipe()
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            child = os.fork()
            if child == 0:
                os.dup2(log.fileno(), 2)
                os.environ["WEIR_EMULATED_FAULTS"] = path
                raise SystemExit(in_child(writer))
            os.close(writer)
            ended = os.pidfd_open(child)
            self.hung = not select.select([ended], [], [], LIMIT_SECONDS)[0]
            if self.hung:
                os.kill(child, signal.SIGKILL)
            os.close(ended)
            self.code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            self.digest = os.read(reader, 100).decode()
            os.close(reader)
            log.seek(0)
            self.log = log.read()

    def reports(self) -> str:
        return re.findall(r"reports=(\d+)$", self.log, re.MULTILINE)[-1:] != ["0"]

    def calls(self) -> dict:
        """Calls of each kind, for a plan in which none came to its number."""
        return {name: int(count) for name, count in re.findall(r"nothing came of (\w+) .*, (\d+) calls", self.log)}

    def problem(self, expected: str) -> str:
        if self.hung:
            return f"did not end in {LIMIT_SECONDS} s"
        if self.reports():
            return "the emulated GPU reported errors, or did not reach its exit"
        if self.code == 0:
            return "" if self.digest == expected else "ended well with other results"
        if self.code != FAILED_CLEARLY:
            return f"exit code {self.code}"
        return "" if "failure: " in self.log else "failed without a word"


def in_child(writer: int) -> int:
    try:
        digest = job()
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        print(f"failure: {type(error).__name__}: {error}", file=sys.stderr)
        return FAILED_CLEARLY
    os.write(writer, digest.encode())
    return 0


def cases(options, counts: dict) -> list:
    chooser = random.Random(options.sample)
    found = []
    for call in options.calls or [call for call in CALLS if call != options.but]:
        for repeat in ("once", "forever"):
            numbers = range(1, counts[call] + 1)
            if not options.every:
                numbers = sorted(chooser.sample(numbers, min(SAMPLES[repeat], len(numbers))))
            found += [f"{call} {number} {CALLS[call]} {repeat}" for number in numbers]
    if not options.calls:
        seeds = range(RANDOM_PLANS) if options.every else [options.sample]
        found += [f"seed:{seed},0.01" for seed in seeds] + ["teardown", "capacity 30MiB"]
    return found


def sweep(options, folder: str) -> int:
    plain = Run("\n".join(f"{call} {NEVER} UNKNOWN" for call in CALLS), folder)
    if plain.code != 0 or plain.problem(plain.digest):
        print(f"without faults: exit code {plain.code}\n{plain.log}")
        return 1
    counts = plain.calls()
    print("calls without faults:", " ".join(f"{call}={counts[call]}" for call in CALLS), flush=True)
    unused = [call for call in CALLS if counts[call] == 0]
    todo = [options.only] if options.only else cases(options, counts)
    failed = same = 0
    for rule in todo:
        run = Run(rule, folder)
        problem = run.problem(plain.digest)
        same += run.code == 0 and not problem
        failed += bool(problem)
        if problem or options.only:
            print(f"{rule}: {problem or 'as it should be'}\n    " + run.log.replace("\n", "\n    "), flush=True)
    if unused:
        print("never called:", *unused)
    print(f"sample {options.sample}: {len(todo) - failed} passed ({same} with the same results), {failed} failed")
    return 1 if failed or unused else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--sample", type=int, default=1, metavar="SEED")
    parser.add_argument("--only", metavar="RULE", help="one line of a fault plan, and the log of its run")
    parser.add_argument("--but", metavar="CALL", help="not this one")
    parser.add_argument("calls", nargs="*", metavar="CALL", help=" ".join(CALLS))
    options = parser.parse_args()
    gc.freeze()  # a collection in a child would copy the pages that it shares
    folder = tempfile.mkdtemp()  # no `with`: children leave through here too, and would remove it
    result = sweep(options, folder)
    gc.unfreeze()
    shutil.rmtree(folder)
    return result


if __name__ == "__main__":
    sys.exit(main())
