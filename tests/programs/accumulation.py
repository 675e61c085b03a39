"""Gradient accumulation: one optimizer step for every three micro-batches."""
import torch

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


def main():
    torch.manual_seed(5)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for step in range(2):
        optimizer.zero_grad(set_to_none=False)
        for micro in range(3):
            ids = tokens((BATCH, CONTEXT + 1), VOCABULARY, 10 * step + micro).to(device())
            loss = model.loss(ids) / 3
            loss.backward()
            record.loss(loss)
        optimizer.step()
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
