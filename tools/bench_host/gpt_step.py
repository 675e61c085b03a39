"""Host time of one training step of a 12-layer GPT (124 million parameters, AdamW). Made for kernels `none`, where a
step is nothing but host code. Prints one JSON line: `step_seconds`, the median of the steps after a warm-up.

Usage: gpt_step.py [STEPS]
"""
import json
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from models import GPT  # noqa: E402

WARM_UP = 5


def steps():
    """A generator that does a step each time."""
    with torch.device("cuda"):
        model = GPT(layers=12, width=768, heads=12, vocabulary=50304, context=1024)
        batches = [torch.zeros(8, 1025, dtype=torch.long) for _ in range(2)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    while True:
        for batch in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model.loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
            yield


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    step = steps()
    next(step)  # makes the model too
    times = []
    for _ in range(WARM_UP - 1 + count):
        start = time.perf_counter()
        next(step)
        times.append(time.perf_counter() - start)
    print(json.dumps({"step_seconds": statistics.median(times[WARM_UP - 1:])}))


if __name__ == "__main__":
    main()
