"""The blocks that one step of the 12-layer GPT (gpt_step.py) asks torch's allocator for, in their order, out of a trace of Weir's.
For bench_replay (replay.cc): recorded_step.write(FILE) makes it anew each time, in a few seconds.

The file is text, one line an event: `+ BLOCK BYTES` is an allocation, `- BLOCK` a free. Before the line `step` stand the blocks
that were alive when the step began.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = 12347  # bytes; nothing in the step has this size
BEFORE = 4  # steps until the optimiser has its state


def job():
    """Steps, with a block of MARK bytes before and after the one that counts."""
    import torch
    sys.path.insert(0, str(ROOT / "tools" / "bench_host"))
    import gpt_step
    step = gpt_step.steps()
    for _ in range(BEFORE):
        next(step)
    torch.empty(MARK, dtype=torch.uint8, device="cuda")
    next(step)
    torch.empty(MARK, dtype=torch.uint8, device="cuda")


def lines(records) -> list:
    """The lines of the file, of a trace with two marks."""
    live, sizes, parts, made = {}, {}, ([], [], []), 0
    for record in records:
        if record.kind == "allocate" and record.amount == MARK:
            made += 1
            continue  # its free finds no block
        part = parts[min(made, 2)]
        if record.kind == "allocate":
            live[record.address] = len(sizes)
            sizes[len(sizes)] = record.amount
            part.append(("+", live[record.address]))
        elif record.kind == "free" and record.address in live:
            part.append(("-", live.pop(record.address)))
    if made != 2:
        raise SystemExit(f"the trace has {made} marks, not 2")
    freed = {number for sign, number in parts[0] if sign == "-"}
    before = [event for event in parts[0] if event[1] not in freed]
    text = [f"{sign} {number}" + (f" {sizes[number]}" if sign == "+" else "") for sign, number in [*before, *parts[1]]]
    return [*text[:len(before)], "step", *text[len(before):]]


def write(path, weir: pathlib.Path, python: str):
    """Runs the job with a trace and writes the file."""
    sys.path.insert(0, str(ROOT / "tests" / "trace"))
    import wtr
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "job.wtr")
        command = [str(weir), "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "off", "--", python,
                   __file__]
        done = subprocess.run(command, env=clean | {"WEIR_TRACE": trace}, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        text = lines(wtr.read(trace).records)
    pathlib.Path(path).write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    job()
