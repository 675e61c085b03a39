"""A job whose allocations are all its own: modules, optimizer, blocks of many sizes, a recorded stream, an error. Prints torch's
statistics at fixed places, as one JSON list.

For kernels `none`: figures are what counts, not values.
"""
import json

import torch

SIZES = (1, 100, 300_000, 1 << 20, (1 << 20) + 1, 5_000_000, 777, 40_000_000)  # bytes


def train():
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for rows in (64, 65, 66, 64):
        model(torch.randn(rows, 256, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def sizes(kept):
    blocks = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in SIZES]
    kept += blocks[::2]


def recorded_stream(found):
    side = torch.cuda.Stream()
    block = torch.empty(3_000_000, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        block.add_(1)
    block.record_stream(side)
    del block
    found.append(torch.cuda.memory_stats())  # the block waits for the stream, and is active
    torch.cuda.synchronize()


def error():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass


def main():
    found, kept = [], []
    for part in (lambda: kept.append(train()), lambda: sizes(kept), lambda: recorded_stream(found), error,
                 torch.cuda.reset_peak_memory_stats, torch.cuda.reset_accumulated_memory_stats, lambda: kept.pop()):
        part()
        found.append(torch.cuda.memory_stats())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
