"""Batches are copied and widened on a side stream, one ahead, and handed over with record_stream."""
import torch

from common import Record, device
from models import Perceptron

BATCH, WIDTH = 640, 1024


class Prefetch:
    """Yields device tensors made on a side stream while the previous batch is used."""

    def __init__(self, batches):
        self._batches, self._stream, self._next = iter(batches), torch.cuda.Stream(), None
        self._start()

    def _start(self):
        batch = next(self._batches, None)
        if batch is None:
            self._next = None
            return
        with torch.cuda.stream(self._stream):
            self._next = batch.pin_memory().to("cuda", non_blocking=True).float().mul_(2.0).sub_(1.0)

    def __iter__(self):
        while self._next is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
            batch = self._next
            batch.record_stream(torch.cuda.current_stream())
            self._start()
            yield batch


def main():
    torch.manual_seed(19)
    random = torch.Generator().manual_seed(20)
    model = Perceptron(WIDTH, *[1024] * 6, WIDTH).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    batches = (torch.rand(BATCH, WIDTH, generator=random, dtype=torch.float64) for _ in range(4))
    for x in Prefetch(batches) if device().type == "cuda" else (2 * b.float() - 1 for b in batches):
        loss = torch.nn.functional.mse_loss(model(x), x)
        del x
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
