"""A two-layer LSTM with dropout between the layers, without cuDNN, for which all of it is one operator larger than the caps."""
import torch
from torch import nn

from common import Record, device

BATCH, LENGTH, WIDTH = 576, 5, 512


def main():
    torch.backends.cudnn.enabled = False
    torch.manual_seed(13)
    rnn = nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.1, batch_first=True).to(device())
    head = nn.Linear(WIDTH, WIDTH).to(device())
    model = nn.ModuleList([rnn, head])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    random = torch.Generator().manual_seed(14)
    record = Record()
    for _ in range(2):
        x = torch.randn(BATCH, LENGTH, WIDTH, generator=random).to(device())
        target = torch.randn(BATCH, WIDTH, generator=random).to(device())
        outputs, (hidden, _) = rnn(x)
        loss = nn.functional.mse_loss(head(hidden[-1]), target) + outputs.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
