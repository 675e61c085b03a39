"""Runs sources in worker processes on the emulated GPU; one that dies or hangs costs its operator, not the table."""
import json
import os
import pathlib
import queue
import selectors
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
IDLE_SECONDS = 120  # without CPU time: it hangs, however busy the machine is
CPU_SECONDS = 300   # it loops: a source takes 0.01 to 10


def environment(build: pathlib.Path) -> dict:
    """The emulated card with torch's own allocator and kernels that do nothing: real host code, no Weir."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("WEIR_", "PYTORCH_", "LD_PRELOAD"))}
    return {**clean, "LD_PRELOAD": str(build / "lib" / "emulated_gpu" / "libweir_emulated_gpu.so"),
            "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1", "WEIR_KERNELS": "none",
            "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answer_of(process: subprocess.Popen):
    """The next line of JSON, or None if the process died or had to be killed."""
    before = used = cpu_seconds(process.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not selector.select(IDLE_SECONDS):
            now = cpu_seconds(process.pid)
            if now == used or now > before + CPU_SECONDS:
                break
            used = now
        else:
            if line := process.stdout.readline():
                return json.loads(line)
    process.kill()
    process.wait()
    return None


class Worker:
    """One process; started anew after each death."""

    def __init__(self, python: str, build: pathlib.Path, probe: pathlib.Path):
        self._command = [python, str(HERE / "worker.py"), str(probe)]
        self._environment = environment(build)
        self._current = tempfile.NamedTemporaryFile()
        self._process = None
        self.watched_by = None

    def _start(self):
        self._current.truncate(0)
        self._current.truncate(256)
        self._process = subprocess.Popen([*self._command, self._current.name], env=self._environment, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        hello = answer_of(self._process)
        if hello is None:
            sys.exit("op table: the worker does not start; run it by hand: " + " ".join(self._command))
        self.watched_by = hello["watched_by"]

    def run(self, source: str) -> dict:
        """Rows of a source. An operator that kills the process is skipped when it runs again, and named."""
        skip = []
        for _ in range(12):
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                self._process.stdin.write(json.dumps({"source": source, "skip": skip}) + "\n")
                self._process.stdin.flush()
                answer = answer_of(self._process)
            except BrokenPipeError:
                answer = None
            if answer is not None:
                return {**answer, "died": skip}
            self._current.seek(0)
            name = self._current.read(256).split(b"\0")[0].decode()
            if name in skip:
                break
            skip.append(name)
            if source == f"schema {name}":  # its only call
                break
        return {"source": source, "rows": [], "failure": "the process dies", "died": skip}

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait()
        self._current.close()


def listing(python: str, build: pathlib.Path, what: str) -> dict:
    """`what`: "--operators" or, slower, "--list" with the sources."""
    done = subprocess.run([python, str(HERE / "worker.py"), what], env=environment(build), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"op table: {done.stderr.strip()}")
    return json.loads(done.stdout)


def run_sources(names: list, jobs: int, python: str, build: pathlib.Path, probe: pathlib.Path, progress) -> tuple:
    """Answers of all sources by name, and by what their probe sees writes."""
    left, answers, watches = queue.SimpleQueue(), {}, set()
    for name in names:
        left.put(name)

    def work():
        worker = Worker(python, build, probe)
        while True:
            try:
                name = left.get_nowait()
            except queue.Empty:
                break
            answers[name] = worker.run(name)
            progress(answers[name], len(answers), len(names))
        if worker.watched_by is not None:
            watches.add(worker.watched_by)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(max(1, min(jobs, len(names))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, "".join(watches)
