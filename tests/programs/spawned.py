"""Two processes of torch.multiprocessing.spawn, each of which trains; a queue brings back what they computed."""
import torch
import torch.multiprocessing

from common import Record, device, finish_for, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY

RANKS = 2


def train(rank: int, results) -> None:
    torch.manual_seed(40 + rank)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for step in range(3):
        loss = model.loss(tokens((BATCH, CONTEXT + 1), VOCABULARY, 100 * rank + step).to(device()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    results.put((rank, record.line(model, optimizer)))


def main():
    results = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(train, (results,), RANKS)  # a line is shorter than what a pipe holds
    lines = dict(results.get() for _ in range(RANKS))
    finish_for([lines[rank] for rank in sorted(lines)])


if __name__ == "__main__":
    main()
