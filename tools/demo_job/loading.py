"""The three ways in which Weir gets into an unmodified job, as command lines and environments.

  run        `weir run … -- python train.py`
  env        environment variables alone: LD_PRELOAD and WEIR_*
  pluggable  torch.cuda.memory.CUDAPluggableAllocator(`weir path`, "weir_malloc", "weir_free"); only the emulated GPU is
             preloaded
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT if (ROOT / "bin" / "weir").exists() else ROOT / "build"  # a bundle, or a checkout
WEIR = BUILD / "bin" / "weir"
EMULATOR = BUILD / "lib" / "emulated_gpu" / "libweir_emulated_gpu.so"
WAYS = ("run", "env", "pluggable")


def command(way: str, weir: dict, job: list) -> tuple:
    """Environment and arguments to run `job` (a Python script and its arguments).

    weir: {"disable": True} for the job alone, or {"vram": SIZE or "off"}.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    environment["WEIR_LOG"] = "info"
    if weir.get("disable"):
        environment["WEIR_DISABLE"] = "1"
    if way == "run":
        options = [] if weir.get("disable") else ["--vram", weir["vram"]]
        return environment, [str(WEIR), "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "cpu", *options, "--",
                             sys.executable, *job]
    environment.update({"WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1", "WEIR_KERNELS": "cpu"})
    if not weir.get("disable"):
        environment["WEIR_VRAM"] = weir["vram"]
    library = subprocess.run([str(WEIR), "path"], check=True, capture_output=True, text=True).stdout.strip()
    if way == "env":
        environment["LD_PRELOAD"] = f"{library} {EMULATOR}"
        return environment, [sys.executable, *job]
    environment["LD_PRELOAD"] = str(EMULATOR)
    start = [] if weir.get("disable") else [str(HERE / "with_pluggable.py"), library]
    return environment, [sys.executable, *start, *job]
