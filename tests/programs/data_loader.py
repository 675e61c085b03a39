"""A DataLoader with two forked workers and pinned memory feeds the training."""
import torch
from torch.utils.data import DataLoader, Dataset

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


class Sequences(Dataset):
    def __len__(self):
        return 3 * BATCH

    def __getitem__(self, index):
        return tokens((CONTEXT + 1,), VOCABULARY, 1000 + index)


def main():
    torch.manual_seed(10)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(
        Sequences(), BATCH, shuffle=True, num_workers=2, multiprocessing_context="fork",
        pin_memory=device().type == "cuda", generator=torch.Generator().manual_seed(11))
    record = Record()
    for ids in loader:
        loss = model.loss(ids.to(device(), non_blocking=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
