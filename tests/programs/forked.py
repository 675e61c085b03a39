"""Forks after CUDA was used, as long jobs do: children that never touch it, loader workers that stay and that do not, forks while a
thread trains. None of it changes what the parent computes (C130, C131)."""
import gc
import os
import sys
import tempfile
import threading

import torch
from torch.utils.data import DataLoader, Dataset

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY

CHILDREN = 8  # beside the thread that trains


class Sequences(Dataset):
    def __len__(self):
        return BATCH

    def __getitem__(self, index):
        return tokens((CONTEXT + 1,), VOCABULARY, 1000 + index)


class Training:
    def __init__(self, record: Record):
        torch.manual_seed(90)
        self.record, self.model = record, GPT().to(device())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def step(self, ids: torch.Tensor) -> None:
        loss = self.model.loss(ids.to(device()))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.record.loss(loss)

    def steps(self, seeds) -> None:
        for seed in seeds:
            self.step(tokens((BATCH, CONTEXT + 1), VOCABULARY, seed))


def in_child(work) -> str:
    """Runs `work` in a forked child, which then ends as a Python process does; what it wrote on stderr. A wrong end is an AssertionError."""
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            os.environ["TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT"] = "0"  # seconds, for threads that only the parent has
            torch.set_num_threads(1)
            work()
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        text = said.read()
    assert code == 0, f"a forked child ended with {code}: {text}"
    assert "weir: exit " not in text and "weir: device" not in text, text  # it was never Weir's
    return text


def on_the_cpu() -> None:
    assert (torch.ones(1 << 18) + 1).sum().item() == 2 << 18


def use_cuda() -> None:
    try:
        torch.ones(4, device="cuda")
    except RuntimeError as error:
        assert "forked subprocess" in str(error), error
    else:
        raise AssertionError("CUDA works in a forked child")


def drop(training: Training) -> None:
    """The child's copies of the parent's tensors go, those in RAM too; the parent's stay."""
    training.model = training.optimizer = None
    gc.collect()
    on_the_cpu()


def forks_beside(training: Training, seeds) -> None:
    """Forks while another thread trains."""
    trains = threading.Thread(target=training.steps, args=(seeds,))
    trains.start()
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            on_the_cpu()
            os._exit(0)  # the threads that Python would wait for are the parent's
        assert os.waitpid(child, 0)[1] == 0
    trains.join()


def main():
    record = Record()
    training = Training(record)
    training.steps([91])
    in_child(lambda: drop(training))
    if device().type == "cuda":
        in_child(use_cuda)
    for persistent in (True, False):
        loader = DataLoader(Sequences(), BATCH, shuffle=True, num_workers=2, multiprocessing_context="fork",
                            persistent_workers=persistent, generator=torch.Generator().manual_seed(92))
        for _ in range(1 + persistent):
            for ids in loader:
                training.step(ids)
    forks_beside(training, [93])
    training.steps([95])
    record.finish(training.model, training.optimizer)


if __name__ == "__main__":
    main()
