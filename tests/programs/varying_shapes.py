"""Every step has another batch size and another sequence length, and a scheduler changes the learning rate."""
import torch

from common import Record, device, tokens
from models import GPT, VOCABULARY

SHAPES = [(4, 128), (9, 57), (4, 119), (6, 100), (1, 16)]


def main():
    torch.manual_seed(6)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(SHAPES))
    record = Record()
    for step, (batch, length) in enumerate(SHAPES):
        loss = model.loss(tokens((batch, length + 1), VOCABULARY, step).to(device()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
