"""A job of this folder under `weir dryrun`."""
import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def dry_run(weir: pathlib.Path, python: str, profile: str, job: str, *arguments) -> tuple:
    """(the report, what the job printed)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [str(weir), "dryrun", "--gpu", profile, "--json", "-o", str(report), "--", python, str(HERE / job), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: one card is too small for what the published run spreads over several
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return json.loads(report.read_text()), done.stdout
