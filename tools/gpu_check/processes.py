"""Programs with a time limit: what they said is kept even when they are stopped."""
import os
import signal
import subprocess
import time


class Ended:
    """How a program ended. code: its exit code, negative for a signal, None when it was stopped at its limit."""

    def __init__(self, code, output: str, errors: str, seconds: float):
        self.code, self.output, self.errors, self.seconds = code, output, errors, seconds

    def tail(self, lines: int = 12) -> list:
        """The last lines of what it said."""
        return (self.errors.splitlines() or self.output.splitlines())[-lines:]

    def describe(self) -> str:
        if self.code is None:
            return f"stopped at its limit after {self.seconds:.0f} s"
        return f"ended by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"


def environment() -> dict:
    """This process's environment without Weir's options."""
    return {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}


def run(command: list, limit: float, environment: dict = None) -> Ended:
    """Runs a command in a session of its own, so that its children end with it. limit: seconds."""
    began = time.monotonic()
    try:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", env=environment,
                                   start_new_session=True)
    except OSError as error:
        return Ended(127, "", f"{command[0]}: {error.strerror}", 0.0)
    try:
        output, errors = process.communicate(timeout=max(limit, 0.1))
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        code = None
    return Ended(code, output, errors, time.monotonic() - began)
