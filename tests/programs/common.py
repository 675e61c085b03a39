"""What every program needs: its device, its numbers, and the one JSON line that ends it.

A program is an ordinary training script. It ends with one line of JSON on stdout:
  digest                sha256 over the bits of every loss, every weight and all optimizer state (and tokens, if any)
  losses                the losses as numbers, for people
  peak_allocated_bytes  torch's own peak, where the device keeps statistics
"""
import hashlib
import json
import sys

import torch


def device() -> torch.device:
    """`cuda`, unless the last argument names another one: `python sgd.py cpu`."""
    return torch.device("cpu" if sys.argv[-1] == "cpu" else "cuda")


def tokens(shape, vocabulary: int, seed: int) -> torch.Tensor:
    """Token ids made on the CPU, the same on every device."""
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def bits(tensor: torch.Tensor) -> bytes:
    """The bytes of one dense tensor."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


class Record:
    """Collects what a run computed and prints it."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self._losses = []

    def loss(self, loss: torch.Tensor) -> None:
        self.tensor(loss)
        self._losses.append(float(loss.detach()))

    def losses(self) -> list:
        return self._losses

    def tensor(self, tensor: torch.Tensor) -> None:
        self.bytes(bits(tensor))

    def bytes(self, data: bytes) -> None:
        self._hash.update(data)

    def model(self, model: torch.nn.Module) -> None:
        for name, tensor in sorted(model.state_dict().items()):
            self._hash.update(name.encode())
            self.tensor(tensor)

    def optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        for index, state in sorted(optimizer.state_dict()["state"].items()):
            for key, value in sorted(state.items()):
                self._hash.update(f"{index}.{key}".encode())
                if isinstance(value, torch.Tensor):
                    self.tensor(value)
                else:
                    self._hash.update(repr(value).encode())

    def line(self, *models_and_optimizers, **more) -> dict:
        """What `finish` prints: for a process that hands it to the one that prints."""
        for item in models_and_optimizers:
            self.model(item) if isinstance(item, torch.nn.Module) else self.optimizer(item)
        line = {"digest": self._hash.hexdigest(), "losses": self._losses, **more}
        if torch.cuda.is_available():
            line["peak_allocated_bytes"] = max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())))
            line["peak_small_bytes"] = torch.cuda.memory_stats().get("allocated_bytes.small_pool.peak", 0)
        return line

    def finish(self, *models_and_optimizers, **more) -> None:
        print(json.dumps(self.line(*models_and_optimizers, **more)), flush=True)


def finish_for(lines: list) -> None:
    """Prints the line of a job whose work other processes have done: theirs, in an order that is always the same."""
    digest = hashlib.sha256("".join(line["digest"] for line in lines).encode()).hexdigest()
    peaks = [line["peak_allocated_bytes"] for line in lines if "peak_allocated_bytes" in line]
    print(json.dumps({"digest": digest, "losses": [loss for line in lines for loss in line["losses"]],
                      **({"peak_allocated_bytes": max(peaks)} if peaks else {})}), flush=True)
