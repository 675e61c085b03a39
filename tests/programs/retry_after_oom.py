"""A batch that does not fit fails with torch.OutOfMemoryError; the script goes on with a smaller one, as many do.

Meant for a small card (the runner sets its size): 512 sequences need more than it has, 4 fit.
"""
import torch

from common import Record, device, tokens
from models import CONTEXT, GPT, VOCABULARY

BATCHES = [512, 4] if device().type == "cuda" else [4]


def step(model, optimizer, batch, number):
    loss = model.loss(tokens((batch, CONTEXT + 1), VOCABULARY, number).to(device()))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def main():
    torch.manual_seed(23)
    model = GPT(dropout=0.0).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record, failures = Record(), []
    for number in range(4):
        for batch in BATCHES if number in (0, 2) else BATCHES[-1:]:
            try:
                record.loss(step(model, optimizer, batch, number))
            except torch.OutOfMemoryError as error:
                failures.append(str(error))
                optimizer.zero_grad()
        if number in (0, 2) and device().type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    if len(failures) != 2 * (len(BATCHES) - 1):
        raise SystemExit(f"the large batch should have failed twice, failed {len(failures)} times")
    record.finish(model, optimizer, errors=failures)


if __name__ == "__main__":
    main()
