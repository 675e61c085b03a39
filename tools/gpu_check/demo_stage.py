"""The demo on the device: twice without Weir, then capped, and a comparison that names where they part."""
import json
import pathlib
import re
import sys
import tempfile

import device_memory
import places
import processes

WORKSPACE = ":4096:8"  # cuBLAS: eight buffers of 4 MiB; CUDA's documented setting for reproducible results
SHARES = (3, 2)  # the cap is the natural peak divided by the first of these that the job fits


class Run:
    """One run of the job."""

    def __init__(self, ended, result: dict, nvml_peak):
        self.ended, self.result, self.nvml_peak = ended, result, nvml_peak
        line = re.search(r"^weir: exit device=0 (.*)$", ended.errors, re.M)
        pairs = (pair.split("=", 1) for pair in line[1].split()) if line else ()
        self.weir = {key: int(value) for key, value in pairs if value.isdigit()}

    def worked(self) -> bool:
        return self.ended.code == 0 and bool(self.result)

    def figures(self) -> dict:
        keys = ("peak_resident", "evictions", "evicted_bytes", "fetches", "fetched_bytes", "floor")
        return {"seconds": round(self.ended.seconds, 2), "step_seconds": step_seconds(self.result),
                "torch_peak_bytes": self.result.get("peak_bytes"), "nvml_peak_bytes": self.nvml_peak,
                "losses": self.result.get("losses"), "hash": self.result.get("hash"),
                **{key: self.weir[key] for key in keys if key in self.weir}}


def step_seconds(result: dict):
    """Median of the steps after the first two."""
    times = sorted(result.get("seconds", [])[2:] or result.get("seconds", []))
    return round(times[len(times) // 2], 4) if times else None


def first_difference(one: dict, other: dict) -> str:
    """Where two results part: empty if nowhere."""
    for step, (a, b) in enumerate(zip(one["losses"], other["losses"]), 1):
        if a != b:
            return f"the loss of step {step} differs ({float.fromhex(a):.9g} and {float.fromhex(b):.9g})"
    return "" if one["hash"] == other["hash"] else "the losses agree, weights or optimizer state do not"


def first_different_operator(one: str, other: str) -> str:
    """From two files of digests (observed_job.py)."""
    a, b = one.splitlines(), other.splitlines()
    for left, right in zip(a, b):
        if left != right:
            number, name, _ = left.split()
            same = name == right.split()[1]
            return f"operator {number}, {name}" if same else f"operator {number} is {name} and {right.split()[1]}"
    return "" if len(a) == len(b) else f"one run has {len(a)} operators, the other {len(b)}"


class Demo:
    """One series of runs. gpu: `real` or `emulated…`. deadline() gives the seconds that are left."""

    def __init__(self, gpu: str, steps: int, deterministic: bool, left):
        self.gpu, self.steps, self.deterministic, self.left = gpu, steps, deterministic, left
        self.lines, self.figures, self.passed = [], {}, True
        self.device = None
        if gpu == "real":
            try:
                self.device = device_memory.Device()
            except (OSError, AttributeError) as error:
                self.say(f"no peak by NVML: {error}")

    def say(self, line: str):
        self.lines.append(line)

    def fail(self, line: str):
        self.passed = False
        self.say(f"FAIL  {line}")

    def job(self, vram: str, digests=None) -> Run:
        """vram: a cap in bytes, or "" for the job without Weir."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            environment = {**processes.environment(), "WEIR_LOG": "info"}
            if self.deterministic:
                environment["CUBLAS_WORKSPACE_CONFIG"] = WORKSPACE
            if not vram:
                environment["WEIR_DISABLE"] = "1"
            observe = ["--deterministic"] if self.deterministic else []
            observe += ["--digests", str(digests)] if digests else []
            command = [places.WEIR, "run", "--gpu", self.gpu, "--beside-real-gpu", *(["--vram", vram] if vram else []), "--", sys.executable,
                       places.HERE / "observed_job.py", *observe, places.TRAIN, "--steps", self.steps, "--result", path]
            with device_memory.Peak(self.device) as peak:
                ended = processes.run(command, self.left(), environment)
            return Run(ended, json.loads(path.read_text()) if path.exists() else {}, peak.bytes)

    def show(self, name: str, run: Run):
        self.figures[name] = run.figures()
        if not run.worked():
            self.say(f"{name}: {run.ended.describe()}")
            self.lines += [f"    {line}" for line in run.ended.tail()]
            return
        ours = run.weir.get("peak_resident", run.result["peak_bytes"])
        self.say(f"{name:<13} {self.steps} steps, {step_seconds(run.result):8.4f} s a step, final loss "
                 f"{run.result['final_loss']:.6f}, peak {mib(ours)} MiB counted, {mib(run.nvml_peak)} MiB by NVML"
                 + (f", {run.weir['evictions']} evictions" if "evictions" in run.weir else ""))

    def operators(self, names: tuple, caps: tuple) -> str:
        """The first operator whose results differ between two runs, found by running both again with digests."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, str(index)) for index in range(2)]
            runs = [self.job(cap, path) for cap, path in zip(caps, paths)]
            for name, run in zip(names, runs):
                if not run.worked():
                    return f"not found: {name} with digests: {run.ended.describe()}"
            found = first_different_operator(*(path.read_text() for path in paths))
            return found or "none when each result is read back at once"

    def capped(self, natural: int):
        """The run under the tightest of the caps that the job fits; None if it fits none."""
        for share in SHARES:
            cap = natural // share
            run = self.job(str(cap))
            self.show(f"capped 1/{share}", run)
            if run.worked():
                return cap, run
            if "OutOfMemoryError" not in run.ended.errors:
                break
        self.fail("no capped run ended")
        return None

    def compare(self):
        first, second = self.job(""), self.job("")
        self.show("uncapped", first)
        self.show("uncapped again", second)
        if not (first.worked() and second.worked()):
            self.fail("the job does not run without Weir: nothing to compare with")
            return
        apart = first_difference(first.result, second.result)
        self.figures["uncapped_runs_agree"] = not apart
        found = self.capped(first.result["peak_bytes"])
        if found is None:
            return
        cap, capped = found
        peak = capped.weir.get("peak_resident", 0)
        if not 0 < peak <= cap:
            self.fail(f"Weir held {mib(peak)} MiB of a cap of {mib(cap)} MiB")
        if not capped.weir.get("evictions"):
            self.fail("nothing had to leave: the capped run shows nothing")
        difference = first_difference(first.result, capped.result)
        self.figures.update(cap_bytes=cap, weir_agrees=not difference)
        if apart:
            where = self.operators(("uncapped", "uncapped again"), ("", ""))
            self.say(f"the two runs without Weir part by themselves: {apart}; first different operator: {where}")
            self.figures["uncapped_runs_part_at"] = [apart, where]
        elif difference:
            where = self.operators(("uncapped", "capped"), ("", str(cap)))
            self.fail(f"Weir's run parts from two that agree: {difference}; first different operator: {where}")
            self.figures["weir_parts_at"] = [difference, where]
        else:
            self.say(f"all {self.steps} losses, weights and optimizer state are identical in the three runs")


def mib(count) -> str:
    return "-" if count is None else f"{count / 2**20:.0f}"


def run(gpu: str, steps: int, deterministic: bool, left) -> tuple:
    """(lines, figures, passed). left(): seconds that remain for this stage."""
    demo = Demo(gpu, steps, deterministic, left)
    demo.compare()
    return demo.lines, demo.figures, demo.passed
