"""Runs a job on an emulated GPU under limits of Weir."""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WEIR = sys.argv[1]
MIB = 1 << 20


def start(script, *arguments, gpu="h200", flags=(), **environment):
    """The process, its output captured as text. `environment`: additions to that of the job, which knows no other WEIR_*."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("WEIR_")}
    command = [WEIR, "run", "--gpu", f"emulated:{gpu}", "--beside-real-gpu", *flags, "--", sys.executable, str(HERE / script),
               *arguments]
    return subprocess.Popen(command, env={**clean, "WEIR_LOG": "info", "OMP_NUM_THREADS": "1", **environment},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """What the job printed as JSON, and its stderr. A job that failed or that the emulated GPU reported is an error."""
    out, err = process.communicate(timeout=120)
    if process.returncode != 0 or "reports=0" not in err:
        raise AssertionError(f"exit code {process.returncode}\n{out}{err}")
    return json.loads(out.strip().splitlines()[-1]), err
