"""A model whose halves are on one device each. What crosses between them is converted, transposed or a slice, so that torch's
kernels of one device read and write blocks of the other."""
import torch

from common import Record, device
from models import Perceptron

BATCH, WIDTH = 128, 1024


def devices() -> tuple:
    return (torch.device("cuda:0"), torch.device("cuda:1")) if device().type == "cuda" else (device(), device())


class TwoHalves(torch.nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.first = Perceptron(WIDTH, *[WIDTH] * 4, WIDTH).to(one)
        self.second = Perceptron(WIDTH, *[WIDTH] * 4, WIDTH).to(other)
        self.other = other

    def forward(self, x):
        return self.second(self.first(x).to(self.other, torch.float64).float())


def main():
    torch.manual_seed(23)
    random = torch.Generator().manual_seed(24)
    one, other = devices()
    model = TwoHalves(one, other)
    mean = torch.zeros(WIDTH, BATCH, device=one)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for _ in range(3):
        x = (torch.rand(BATCH, WIDTH, generator=random) - 0.5).to(one)
        y = model(x)
        loss = torch.nn.functional.mse_loss(y, x.to(other))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean.t().copy_(y.detach())
        x[:, ::2].copy_(y.detach()[:, ::2])
        record.loss(loss)
        record.tensor(mean)
        record.tensor(x)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
