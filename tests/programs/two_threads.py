"""Two threads train two models on two streams."""
import threading

import torch

from common import Record, device
from models import Perceptron

BATCH, WIDTH = 512, 768


class Job(threading.Thread):
    """A thread whose failure is raised by join()."""

    def __init__(self, *arguments):
        super().__init__()
        self._arguments, self._failure = arguments, None

    def run(self):
        try:
            train(*self._arguments)
        except BaseException as failure:
            self._failure = failure

    def join(self, timeout=None):
        super().join(timeout)
        if self._failure:
            raise self._failure


def train(model, optimizer, stream, seed, record):
    random = torch.Generator().manual_seed(seed)
    with torch.cuda.stream(stream):
        for _ in range(3):
            x = torch.randn(BATCH, WIDTH, generator=random).to(device())
            loss = torch.nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            record.loss(loss)


def main():
    torch.manual_seed(22)
    records, jobs, threads = [Record(), Record()], [], []
    for index in range(2):
        model = Perceptron(WIDTH, *[1024] * 5, WIDTH).to(device())
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        stream = torch.cuda.Stream() if device().type == "cuda" else None
        if stream:
            stream.wait_stream(torch.cuda.current_stream())
        jobs.append((model, optimizer, stream))
        threads.append(Job(*jobs[index], index, records[index]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model, optimizer, stream in jobs:
        if stream:
            torch.cuda.current_stream().wait_stream(stream)
        records[0].model(model)
        records[0].optimizer(optimizer)
    records[0].tensor(torch.tensor(records[1].losses()))
    records[0].finish()


if __name__ == "__main__":
    main()
