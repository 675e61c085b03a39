"""What a finished run must have printed, for each kind of cell and each expectation."""
import json
import re

WEIR_LINE = re.compile(r"^weir: exit (device=.*)$", re.M)
EMULATOR_LINE = re.compile(r"^weir: emulated GPU: .*\breports=(\d+)", re.M)
IDLE = ("ops_observed", "threads_started", "copies", "driver_calls_steady")


def result_of(stdout: str) -> dict:
    """The JSON line that a program ends with; {} if there is none."""
    for line in reversed(stdout.strip().splitlines()):
        try:
            return json.loads(line)
        except ValueError:
            return {}
    return {}


def weir_figures(stderr: str) -> list:
    """The figures of Weir's exit lines, one for each device that the job used."""
    lines = ([pair.split("=", 1) for pair in line.split() if "=" in pair] for line in WEIR_LINE.findall(stderr))
    return [{key: int(value) if value.lstrip("-").isdigit() else value for key, value in line} for line in lines]


def problems(program, cell, run, natural, cap: int) -> list:
    """Sentences about what is wrong with `run`; empty if it passes. `natural` is the result of the natural run."""
    if run.timed_out:
        return [f"still running after {program.seconds} s"]
    if cell.kind == "capped" and program.expects == "kept":
        return _kept(run, cap)
    if run.code != 0:
        return [f"exit code {run.code}"]
    found = []
    result = result_of(run.stdout)
    if "digest" not in result:
        return ["no JSON line with a digest at the end of stdout"]
    reports = [int(count) for count in EMULATOR_LINE.findall(run.stderr)]
    if not reports:
        found.append("the emulated GPU printed no exit line")
    if any(reports):
        found.append(f"the emulated GPU reported {sum(reports)} errors")
    if result.get("wrong"):
        found.append(f"wrong bytes: {result['wrong']}")
    if program.expects == "fits":
        found += _fit(result)
    if cell.kind == "natural":
        return found
    devices = weir_figures(run.stderr)
    found += [] if devices else ["Weir printed no exit line (WEIR_LOG=info)"]
    for figures in devices:
        found += _figures(program, cell, figures, cap)
    if cell.kind == "capped" and program.expects == "refused":
        return found + _refusals(result.get("errors", []), program.runtime_errors)
    if cell.kind == "capped" and program.expects == "ram":
        return found + _ram(result.get("errors", []))
    if cell.kind == "capped" and program.expects == "lowered":
        found += _lowered(result)
    if program.expects in ("refused", "ram") and result.get("errors"):
        found.append(f"errors without a cap: {result['errors']}")
    if cell.kernels == "cpu" and result["digest"] != natural["digest"]:
        found.append(f"another digest than without Weir: losses {result['losses']}, not {natural['losses']}")
    return found


def _lowered(result: dict) -> list:
    """The job has set a cap of `lowered` bytes: it holds at once, and is what the job is told."""
    lowered = result["lowered"]
    return [f"{name}={result.get(name)} with a cap of {lowered}" for name, right in (
        ("reserved", 0 < result.get("reserved", 0) <= lowered), ("total", result.get("total") == lowered),
        ("fraction", result.get("fraction") == lowered)) if not right]


def _figures(program, cell, figures: dict, cap: int) -> list:
    if cell.kind == "uncapped":
        idle = IDLE if program.steady else IDLE[:-1]
        return [f"{name}={figures.get(name)} without a cap" for name in idle if figures.get(name) != 0]
    found = []
    if figures.get("evictions", 0) <= 0:
        found.append("nothing was evicted: this run proves nothing")
    if cap and figures.get("cap") != cap:
        found.append(f"the cap was {figures.get('cap')}, not {cap}")
    if not 0 < figures.get("peak_resident", 0) <= figures.get("cap", 0):
        found.append(f"peak_resident={figures.get('peak_resident')} is not within cap={figures.get('cap')}")
    return found


def _kept(run, cap: int) -> list:
    """Nothing may leave in this job: it must run out of memory within the cap, and the error must say why."""
    found = [] if run.code != 0 and "CUDA out of memory" in run.stderr else ["the job did not run out of memory"]
    if "nothing leaves in a job with compiled or foreign code" not in run.stderr:
        found.append("the error does not say why nothing may leave")
    found += [f"evictions={figures.get('evictions')}, peak_resident={figures.get('peak_resident')}, cap={cap}"
              for figures in weir_figures(run.stderr)
              if figures.get("evictions") != 0 or figures.get("peak_resident", 0) > cap]
    return found


def _refusals(errors: list, runtime_errors: tuple) -> list:
    """Every op of op_larger_than_cap.py must be refused by name, with its need and the cap in numbers."""
    words = {"allocating": "add", "in_place": "mul_", "list_op": "_foreach_add_", "matrix": "mm", "fused": "_fused_adam_"}
    found = [f"{op} was not refused" for op in words if op not in {error["op"] for error in errors}]
    for error in errors:
        text = error["text"]
        if error["type"] != "OutOfMemoryError" and not (error["type"] == "RuntimeError" and error["op"] in runtime_errors):
            found.append(f"{error['op']} raised {error['type']}: {text}")
        if words[error["op"]] not in text or "16.00 MiB" not in text or len(re.findall(r"\d+(?:\.\d+)? [KMG]iB", text)) < 2:
            found.append(f"the error does not name op, need and cap: {text}")
    return found


def _ram(errors: list) -> list:
    if not errors:
        return ["the RAM budget was never exhausted"]
    return [] if "RAM" in errors[0] and "WEIR_RAM" in errors[0] else [f"the error does not speak of WEIR_RAM: {errors[0]}"]


def _fit(result: dict) -> list:
    found = []
    if result.get("seconds", 1e9) > 120:
        found.append(f"took {result.get('seconds')} s, more than 120")
    if result.get("rss_bytes", 1 << 60) > 8 << 30:
        found.append(f"used {result.get('rss_bytes')} bytes of RAM, more than 8 GiB")
    return found
