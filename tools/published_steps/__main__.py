"""`python tools/published_steps` predicts the steps of jobs whose speed was published, on an A100 of 80 GB, and prints the table
of docs/virtual-clock.md: what was published, what the emulated card says, and how far that is off."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# (setting, published units a second, their name, units of a step, source in the documentation)
PUBLISHED = {
    "gpt2-medium-1024": ("MPT-350m, 1024 tokens, BF16, 2 x 64 sequences a card", 64_813, "tokens", 2 * 64 * 1024, "1"),
    "gpt2-medium-2048": ("MPT-350m, 2048 tokens, BF16, 2 x 32 sequences a card", 58_782, "tokens", 2 * 32 * 2048, "1"),
    "resnet50-amp": ("ResNet-50 v1.5, FP16 autocast, channels last, 256 images", 2_470, "images", 256, "2"),
    "resnet50-tf32": ("ResNet-50 v1.5, TF32, 256 images", 938, "images", 256, "2"),
}


def predicted_ms(name: str, weir: pathlib.Path, python: str) -> float:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [str(weir), "dryrun", "--gpu", "a100-80g", "--json", "-o", str(report), "--", python, str(HERE / "job.py"), name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: one card is too small for what the published run spreads over several
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return json.loads(report.read_text())["step"]["median_ns"] / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit code 1 when the documentation has other figures")
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build" / "bin" / "weir")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    options = parser.parse_args()
    print("| setting | published | as a step | predicted | error |\n|---|---|---|---|---|")
    documented, missing = (ROOT / "docs" / "virtual-clock.md").read_text().splitlines(), 0
    for name, (setting, rate, units, of_a_step, source) in PUBLISHED.items():
        published, predicted = 1000 * of_a_step / rate, predicted_ms(name, options.weir, options.python)
        line = (f"| {setting} [{source}] | {rate} {units}/s | {published:.0f} ms | {predicted:.0f} ms | "
                f"{100 * (predicted / published - 1):+.0f} % |")
        print(line, flush=True)
        missing += line not in documented
    if options.check and missing:
        print(f"docs/virtual-clock.md has other figures in {missing} of these lines")
    return 1 if options.check and missing else 0


if __name__ == "__main__":
    sys.exit(main())
