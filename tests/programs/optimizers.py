"""Trains a GPT with the optimizer that the first argument names."""
import sys

import torch

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY

OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "adamw_single": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=1e-2),
}


def main():
    torch.manual_seed(1)
    # Adafactor keeps next to no state: more layers make up for it, so that a third of the peak still holds any one op.
    model = GPT(layers=4 if sys.argv[1] == "adafactor" else 2).to(device())
    optimizer = OPTIMIZERS[sys.argv[1]](model.parameters())
    record = Record()
    for step in range(4):
        ids = tokens((BATCH, CONTEXT + 1), VOCABULARY, step).to(device())
        loss = model.loss(ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
