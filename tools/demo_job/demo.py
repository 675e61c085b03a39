"""Trains `train.py`, which knows nothing of Weir, three ways on the emulated GPU: without Weir, with Weir and no cap,
and with Weir under a cap. Exit code 0 only if every loss and a hash of all weights and optimizer state are equal in the
three, the peak stayed within the cap, bytes did leave, and the emulated GPU reported no error; 1 if not; 2 wrong usage.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import loading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
UNITS = {"": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30,
         "T": 1 << 40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "B": 1}


def size(text: str) -> int:
    """Bytes from `90MiB`, `1.5G`, `100MB` or a plain number."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not match or match[2].upper() not in UNITS or match[2].endswith("b") or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; say 90MiB or 1.5GiB")
    return int(float(match[1]) * UNITS[match[2].upper()])


class Outcome:
    """What one run gave: its result file, and what Weir and the emulated GPU said on stderr."""

    def __init__(self, code: int, result: dict, stderr: str):
        self.code, self.result, self.stderr = code, result, stderr
        line = re.search(r"^weir: exit device=0 (.*)$", stderr, re.M)
        pairs = (pair.split("=", 1) for pair in line[1].split()) if line else ()
        self.weir = {key: int(value) for key, value in pairs if value.isdigit()}
        reports = re.findall(r"^weir: emulated GPU: .*\breports=(\d+)", stderr, re.M)
        self.reports = sum(map(int, reports)) if reports else None

    def step_seconds(self) -> float:
        """Median of the steps after the first two."""
        times = sorted(self.result["seconds"][2:] or self.result["seconds"])
        return times[len(times) // 2]

    def moved(self) -> int:
        return self.weir.get("evicted_bytes", 0) + self.weir.get("fetched_bytes", 0)


def run(title: str, load: str, weir: dict, steps: int) -> Outcome:
    """Runs train.py and shows its lines as they come. `weir`: see loading.command."""
    print(f"\n{title}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "result.json")
        environment, arguments = loading.command(load, weir, [str(HERE / "train.py"), "--steps", str(steps), "--result", str(path)])
        process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace")
        stderr = []
        reader = threading.Thread(target=lambda: stderr.extend(process.stderr))
        reader.start()
        for line in process.stdout:
            print(f"  {line}", end="", flush=True)
        code = process.wait()
        reader.join()
        result = json.loads(path.read_text()) if path.exists() else {}
    outcome = Outcome(code, result, "".join(stderr))
    if code or not result:
        print(f"  exit code {code}; the last lines of its stderr:\n{''.join(stderr[-25:])}", file=sys.stderr)
        raise SystemExit(1)
    return outcome


def verdict(plain: Outcome, free: Outcome, capped: Outcome, cap: int) -> list:
    """(sentence, holds) for each thing that this run has to show."""
    runs = (plain, free, capped)
    same_losses = all(r.result["losses"] == plain.result["losses"] for r in runs)
    same_state = all(r.result["hash"] == plain.result["hash"] for r in runs)
    peak = capped.weir.get("peak_resident", 0)
    return [
        (f"losses of all {len(plain.result['losses'])} steps are identical in the three runs", same_losses),
        ("all weights and all optimizer state are identical in the three runs", same_state),
        (f"Weir never held more than the cap ({mib(peak)} of {mib(cap)} MiB)", 0 < peak <= cap == capped.weir["cap"]),
        (f"bytes had to leave ({capped.weir.get('evictions', 0)} evictions)", capped.weir.get("evictions", 0) > 0),
        ("without a cap Weir did nothing", free.weir.get("evictions") == free.weir.get("ops_observed") == 0),
        ("the emulated GPU saw no wrong access", all(r.reports == 0 for r in runs)),
    ]


def mib(count: int) -> str:
    return f"{count / 2**20:.0f}"


def table(runs: list) -> str:
    """runs: (name, outcome, cap or None)."""
    lines = [f"{'':<18}{'step (s)*':>10}{'peak (MiB)':>12}{'cap (MiB)':>11}{'evictions':>11}{'moved (MiB)':>13}{'final loss':>12}"]
    for name, outcome, cap in runs:
        peak = outcome.weir.get("peak_resident") or outcome.result["peak_bytes"]
        lines.append(
            f"{name:<18}{outcome.step_seconds():>10.2f}{mib(peak):>12}{mib(cap) if cap else '-':>11}"
            f"{outcome.weir.get('evictions', '-'):>11}{mib(outcome.moved()) if outcome.weir else '-':>13}"
            f"{outcome.result['final_loss']:>12.4f}")
    return "\n".join(lines + [
        "* wall-clock seconds of this machine: kernels run on its CPU, copies on its memory. Not a GPU's times."])


def figures(plain: Outcome, capped: Outcome, cap: int, identical: bool, reports) -> dict:
    names = ("evictions", "evicted_bytes", "fetches", "fetched_bytes")
    return {
        "natural_peak_bytes": plain.result["peak_bytes"], "cap_bytes": cap,
        "peak_resident_bytes": capped.weir.get("peak_resident", 0), "identical": identical,
        **{name: capped.weir.get(name, 0) for name in names}, "reports": reports,
        "final_loss": capped.result["final_loss"], "step_seconds": capped.step_seconds()}


def parse():
    parser = argparse.ArgumentParser(prog="tools/demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vram", type=size, metavar="SIZE", help="the cap; default: a third of the natural peak")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--load", choices=loading.WAYS, default="run",
                        help="weir run; environment variables alone; or torch's CUDAPluggableAllocator")
    parser.add_argument("--json", metavar="FILE", help="write the figures of the capped run")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps wants at least 1")
    return options


def main() -> int:
    options = parse()
    print("Training a GPT on the help texts of Python, device cuda, on the emulated GPU (no GPU is used).")
    plain = run("1. without Weir", options.load, {"disable": True}, options.steps)
    cap = options.vram or plain.result["peak_bytes"] // 3
    free = run("2. with Weir, no cap", options.load, {"vram": "off"}, options.steps)
    capped = run(f"3. with Weir, at most {mib(cap)} MiB of the natural {mib(plain.result['peak_bytes'])} MiB",
                 options.load, {"vram": str(cap)}, options.steps)
    print("\n" + table([("without Weir", plain, None), ("Weir, no cap", free, None), ("Weir, capped", capped, cap)]) + "\n")
    shown = verdict(plain, free, capped, cap)
    for sentence, holds in shown:
        print(f"{'yes' if holds else 'NO '}  {sentence}")
    passed = all(holds for _, holds in shown)
    print(f"\n{'PASSED' if passed else 'FAILED'}: {plain.result['parameters'] / 1e6:.1f} million parameters, "
          f"{mib(plain.result['peak_bytes'])} MiB trained in {mib(capped.weir.get('peak_resident', 0))} MiB, loading: {options.load}")
    if options.json:
        reports = None if None in (r.reports for r in (plain, free, capped)) else sum(r.reports for r in (plain, free, capped))
        text = json.dumps(figures(plain, capped, cap, shown[0][1] and shown[1][1], reports), indent=1)
        pathlib.Path(options.json).write_text(text + "\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
