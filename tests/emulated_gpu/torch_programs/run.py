"""Runs a program of this folder twice, on the CPU of plain torch and on the emulated GPU, and compares every tensor.

Usage: run.py PRELOAD_LIBRARY PROGRAM

A program is PROGRAM.py with functions `case_NAME(device) -> list of tensors or numbers`. Results must be equal bit for
bit. Functions named `close_NAME` have sums in another order on CUDA than on the CPU by torch's own composition (LSTM
gates): theirs must agree to 1e-4. Functions named `alone_NAME` run on the emulated GPU only and check by themselves.
Exit code 0 when all agree and the emulator reported nothing.
"""
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

FOLDER = pathlib.Path(__file__).parent
KERNELS = {"without_kernels": "none", "cudnn_path": "none", "graphs": "none", "compiled": "none"}
GPUS = {"two_devices": "emulated:h200x2"}


def run_cases(program: str, device: str, output: str) -> None:
    module = importlib.import_module(program)
    results = {}
    for name, function in list(vars(module).items()):
        if not re.match("case_|close_" if device == "cpu" else "case_|close_|alone_", name):
            continue
        torch.manual_seed(20)
        values = function(device)
        results[name] = [v.detach().cpu().clone() if torch.is_tensor(v) else v for v in values or []]
    torch.save(results, output)


def run_once(program: str, device: str, output: pathlib.Path, preload: str | None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    if preload is not None:
        environment |= {"LD_PRELOAD": preload, "WEIR_GPU": GPUS.get(program, "emulated:h200"), "WEIR_EMULATED_CHOSEN": "1",
                        "TRITON_LIBCUDA_PATH": str(pathlib.Path(preload).parent),
                        "WEIR_KERNELS": KERNELS.get(program, "cpu")}
    command = [sys.executable, __file__, "--cases", program, device, str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=FOLDER)
    if done.returncode != 0:
        sys.exit(f"{program} on {device}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def differences(expected: dict, got: dict) -> list[str]:
    found = []
    for name, values in expected.items():
        if len(values) != len(got[name]):
            found.append(f"{name}: {len(values)} results, {len(got[name])} on the emulated GPU")
            continue
        for index, (want, have) in enumerate(zip(values, got[name])):
            tolerance = 1e-4 if name.startswith("close_") else 0.0
            try:
                torch.testing.assert_close(have, want, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
            except AssertionError as error:
                found.append(f"{name}[{index}]: {error}")
    return found


def main() -> None:
    preload, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        on_cpu, on_emulated = pathlib.Path(folder, "cpu.pt"), pathlib.Path(folder, "emulated.pt")
        run_once(program, "cpu", on_cpu, None)
        log = run_once(program, "cuda", on_emulated, preload)
        problems = differences(torch.load(on_cpu), torch.load(on_emulated))
    exit_line = re.search(r"kernels=\w+ launches=(\d+).* copies=\d+ reports=(\d+)", log)
    if exit_line is None or int(exit_line.group(1)) == 0:
        problems.append("the emulated GPU ran nothing")
    elif int(exit_line.group(2)) != 0:
        problems.append(f"reports:\n{log}")
    if "unchecked_launches" in log:
        problems.append(f"kernels whose arguments were not checked:\n{log}")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    if sys.argv[1] == "--cases":
        run_cases(*sys.argv[2:5])
    else:
        main()
