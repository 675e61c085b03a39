"""A checkpoint is saved in the middle, everything is dropped, and training goes on from the file."""
import os
import tempfile

import torch

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


def make():
    model = GPT(dropout=0.0).to(device())
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, optimizer, steps, record):
    for step in steps:
        loss = model.loss(tokens((BATCH, CONTEXT + 1), VOCABULARY, step).to(device()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)


def main():
    torch.manual_seed(12)
    record = Record()
    model, optimizer = make()
    train(model, optimizer, range(2), record)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        del model, optimizer
        model, optimizer = make()
        # Through the CPU, where the step counts live: they decide host arithmetic, also when no kernel computes.
        saved = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        del saved
    train(model, optimizer, range(2, 4), record)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
