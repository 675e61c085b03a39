"""Torch jobs on the emulated GPU that share one import of torch, which takes longer than most of them: each is a fork of a process
that has torch and has not used CUDA yet. The emulator reads its variables in the fork, and ends with it."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).resolve().parent / "torch_programs"


class ForkedJobs:
    """One process with torch, and the emulated GPU preloaded. Jobs find the modules of torch_programs."""

    def __init__(self, preload: str):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        environment = kept | {"LD_PRELOAD": str(pathlib.Path(preload).resolve()), "WEIR_GPU": "emulated", "WEIR_EMULATED_CHOSEN": "1"}
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, cwd=PROGRAMS)

    def close(self):
        self.process.communicate()

    def run(self, program: str, environment: dict) -> tuple:
        """(what the program printed, what it and the emulator wrote to stderr). It must end well."""
        self.process.stdin.write(json.dumps([program, environment]) + "\n")
        self.process.stdin.flush()
        code, printed, errors = json.loads(self.process.stdout.readline())
        if code:
            raise AssertionError(f"exit status {code}\n{errors}")
        return printed, errors


def be_a_job(environment: dict, outputs: list):
    """The process is a fork: this becomes its environment, and these its stdout and stderr."""
    os.environ.update(environment)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, output in enumerate(outputs, start=1):
        os.dup2(output.fileno(), number)


def next_program() -> str:
    """Returns in a fork, with the program that it is to run, and when all are done, with none."""
    for line in sys.stdin:
        program, environment = json.loads(line)
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
            fork = os.fork()
            if fork == 0:
                be_a_job(environment, [printed, errors])
                return program
            _, status = os.waitpid(fork, 0)
            texts = [(file.seek(0), file.read())[1] for file in (printed, errors)]
        print(json.dumps([status, *texts]), flush=True)
    return ""


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    import torch._dynamo  # noqa: F401  # an optimizer's first step imports it
    program = next_program()
    exec(compile(program, "job", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    ctypes.CDLL(None).exit(0)  # taking the interpreter down takes longer than most jobs
