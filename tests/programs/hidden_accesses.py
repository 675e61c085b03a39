"""Ops whose host code makes temporaries for its own kernels, writes what no schema marks, or reads what no argument lists:
dense embedding gradients, accumulating index_put_, running statistics, sums over sparse gradients, resized storages."""
import torch
from torch import nn

from common import Record, device, tokens

ROWS, WIDTH, BATCH, FEATURES = 4096, 256, 4096, 1 << 18


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, WIDTH) for _ in range(6))
        self.sparse = nn.Embedding(ROWS, WIDTH, sparse=True)
        self.norms = nn.ModuleList(nn.BatchNorm1d(FEATURES) for _ in range(3))  # statistics of 1 MiB each

    def forward(self, ids):
        rows = torch.zeros((), device=device())
        for table, i in zip(self.tables, ids):
            rows = rows + table(i).view(-1, FEATURES)
        for norm in self.norms:
            rows = norm(rows).tanh()
        return rows.mean() + self.sparse(ids[0]).mean()


def counted(tables, ids):
    """How often each row was used, times its index: index_put_ that accumulates, with many repeated indices."""
    counts = [torch.zeros(ROWS, WIDTH, device=device()) for _ in tables]
    for count, i in zip(counts, ids):
        values = torch.arange(BATCH, device=device(), dtype=torch.float32)[:, None].expand(BATCH, WIDTH).contiguous()
        count.index_put_((i,), values, accumulate=True)
    return counts


def resized(tensor):
    """The bytes go and come back in a storage of another size, as sharded parameters do."""
    kept = tensor.cpu()
    tensor.untyped_storage().resize_(0)
    tensor.untyped_storage().resize_(kept.untyped_storage().nbytes())
    tensor.copy_(kept)
    return tensor


def main():
    torch.manual_seed(23)
    model = Net().to(device())
    dense = [p for name, p in model.named_parameters() if not name.startswith("sparse")]
    optimizer = torch.optim.SGD(dense, lr=0.5)
    record = Record()
    for step in range(3):
        ids = tokens((6, BATCH), ROWS // 8, step).to(device())
        counts = counted(model.tables, ids)
        loss = model(ids)
        loss.backward()
        record.loss(loss)
        gradient = model.sparse.weight.grad
        record.tensor(torch.sparse.sum(gradient, 1).to_dense())
        record.tensor(gradient.coalesce().to_dense())
        model.sparse.weight.grad = None
        optimizer.step()
        optimizer.zero_grad()
        for count in counts:
            record.tensor(resized(count))
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
