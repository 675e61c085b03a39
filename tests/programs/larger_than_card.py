"""A job of about 2 GiB: wide layers, SGD with momentum. The runner gives it a card of two thirds of that, and no cap."""
import torch
from torch import nn

from common import Record, device

LAYERS, WIDTH, BATCH = 10, 4096, 16  # 64 MiB a layer, and as much for its gradient and its momentum


def main():
    torch.manual_seed(24)
    with torch.device(device()):
        model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    random = torch.Generator().manual_seed(25)
    record = Record()
    for _ in range(2):
        x = torch.randn(BATCH, WIDTH, generator=random).to(device())
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
