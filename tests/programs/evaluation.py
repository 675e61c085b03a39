"""Evaluation after training, twice: no gradients, larger batches, optimizer state idle."""
import torch

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


@torch.no_grad()
def evaluate(model, record):
    model.eval()
    for batch in range(2):
        record.loss(model.loss(tokens((2 * BATCH, CONTEXT + 1), VOCABULARY, 100 + batch).to(device())))
    model.train()


def main():
    torch.manual_seed(7)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for epoch in range(2):
        for step in range(2):
            loss = model.loss(tokens((BATCH, CONTEXT + 1), VOCABULARY, 2 * epoch + step).to(device()))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            record.loss(loss)
        evaluate(model, record)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
