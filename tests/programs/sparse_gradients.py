"""Embedding tables with sparse gradients: SparseAdam for some of them, SGD for the others, Adam for the dense part."""
import torch
from torch import nn

from common import Record, device, tokens

ROWS, WIDTH, BATCH, BAG = 6000, 320, 512, 4


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH, sparse=True) for _ in range(4))
        self.dense = nn.Sequential(nn.Linear(4 * WIDTH, 640), nn.ReLU(), nn.Linear(640, 1))

    def forward(self, ids):  # ids: tables, batch, bag
        return self.dense(torch.cat([table(i).mean(1) for table, i in zip(self.tables, ids)], 1)).squeeze(1)


def main():
    torch.manual_seed(15)
    model = Ranker().to(device())
    optimizers = [
        torch.optim.SparseAdam([t.weight for t in model.tables[:2]], lr=1e-2),
        torch.optim.SGD([t.weight for t in model.tables[2:]], lr=0.1),
        torch.optim.Adam(model.dense.parameters(), lr=1e-3),
    ]
    random = torch.Generator().manual_seed(16)
    record = Record()
    for step in range(3):
        ids = tokens((4, BATCH, BAG), ROWS, step).to(device())
        target = torch.rand(BATCH, generator=random).to(device())
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), target)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, *optimizers)


if __name__ == "__main__":
    main()
