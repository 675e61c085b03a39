"""What pytest_workers.py lets pytest run: one training for each seed. RESULTS: the folder for what it computed; DEVICE: `cpu`, or else."""
import json
import os
import pathlib

import pytest
import torch

from common import Record, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


@pytest.mark.parametrize("seed", range(4))
def test_Training_Seed_LeavesItsLine(seed):
    device = "cpu" if os.environ["DEVICE"] == "cpu" else "cuda"
    torch.manual_seed(seed)
    model = GPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    ids = tokens((BATCH, CONTEXT + 1), VOCABULARY, seed).to(device)
    for _ in range(2):
        loss = model.loss(ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    line = record.line(model, optimizer, process=os.getpid())
    pathlib.Path(os.environ["RESULTS"], f"{seed}.json").write_text(json.dumps(line))
