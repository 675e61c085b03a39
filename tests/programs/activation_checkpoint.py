"""torch.utils.checkpoint, both kinds: every block is computed again in the backward pass, dropout included."""
import torch
from torch.utils.checkpoint import checkpoint

from common import Record, device, tokens
from models import CONTEXT, GPT, VOCABULARY


def main():
    torch.manual_seed(4)
    model = GPT(layers=3).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for step in range(2):
        ids = tokens((6, CONTEXT + 1), VOCABULARY, step).to(device())
        loss = model.loss(ids, run=lambda block, x: checkpoint(block, x, use_reentrant=step % 2 == 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
