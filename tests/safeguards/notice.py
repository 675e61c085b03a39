"""Runs the jobs of one module on the test build of the plugin: whole, and without each of the safeguards that the job names.

    notice.py MODULE [SAFEGUARD]

Whole it must pass; without one of them it must not: an exception, a wrong byte, a report of the emulated GPU, or a hang. A
job that names none shows what only the core sees to.
torch is imported once; every run is a process of its own, forked before CUDA starts.
"""
import importlib
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / "allocator" / "base" / "safeguards.h"
SECONDS_BETWEEN_LOOKS = 0.02
ASLEEP = 100  # looks


def unclaimed() -> set:
    """Names that the header has and no job notices, or the other way round."""
    listed = HEADER.read_text().split("#define WEIR_PLUGIN_SAFEGUARDS", 1)[1].split("enum class", 1)[0]
    known = set(re.findall(r"X\((\w+), R\d+\)", listed))
    claims = "".join(path.read_text() for path in HERE.glob("*_jobs.py"))
    return known ^ set(re.findall(r'"([A-Z]\w+)"', " ".join(re.findall(r"@notices\(([^)]*)\)", claims))))


def child(job, settings: dict, without: str) -> None:
    """The run itself; never returns."""
    code = 1
    try:
        os.environ.update(settings)
        if without:
            os.environ["TEST_WITHOUT"] = without
        job()
        code = 0
    except BaseException:  # what a test notices; the parent shows it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def is_asleep(process: int) -> bool:
    """Every thread waits. One that could run and gets no processor does not count."""
    states = [(task / "stat").read_text().rpartition(") ")[2][0] for task in pathlib.Path(f"/proc/{process}/task").iterdir()]
    return all(state == "S" for state in states)


def wait(process: int) -> str:
    """How it ended: empty if well. One whose threads all wait, every time one looks, is ended."""
    asleep, hangs = 0, False
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else "hangs" if hangs else f"exit code {code}"
        try:
            asleep = asleep + 1 if is_asleep(process) else 0
        except FileNotFoundError:  # a thread has just ended
            asleep = 0
        if asleep > ASLEEP and not hangs:
            hangs = True
            os.kill(process, signal.SIGKILL)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def run(job, settings: dict, without: str = "") -> str:
    """Empty if the job ended well, else how it ended and what it said last."""
    with tempfile.TemporaryFile() as output:
        process = os.fork()
        if process == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            child(job, settings, without)
        end = wait(process)
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or [""]
    if end and not without:
        print("\n".join(lines[-20:]))
    said = [line for line in lines if re.search(r"Error\b|GPU: report", line)] or lines
    return end and f"{end}: {said[-1][:150]}"


def main() -> int:
    if unclaimed():
        print(f"header and jobs disagree about {', '.join(sorted(unclaimed()))}")
        return 1
    module = importlib.import_module(sys.argv[1])
    failed = 0
    for job in module.JOBS:
        chosen = [name for name in job.safeguards if name in sys.argv[2:] or len(sys.argv) == 2]
        if len(sys.argv) > 2 and not chosen:
            continue
        broken = run(job.function, job.settings)
        failed += bool(broken)
        print(f"FAIL {job.function.__name__}: {broken}" if broken else f"ok   {job.function.__name__}", flush=True)
        for name in () if broken else chosen:
            noticed = run(job.function, job.settings, name)
            failed += not noticed
            print(f"{'ok  ' if noticed else 'FAIL'}   without {name}: {noticed or 'nothing'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
