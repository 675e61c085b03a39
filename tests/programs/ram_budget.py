"""Keeps tensors until they fit neither in VRAM nor in the RAM budget; what was kept must still be right (C07).

The JSON line lists `errors` (texts) and `wrong` (tensors whose bytes changed). After the error the older half of the
tensors is freed and new ones are made: they must fit.
"""
import torch

from common import Record, bits, device

COUNT, SHAPE = 64, (512, 1024)  # 64 tensors of 2 MiB


def make(index):
    """A tensor on the CPU that only its index determines."""
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(index))


def main():
    record, errors, kept = Record(), [], {}
    for index in range(COUNT):
        try:
            kept[index] = make(index).to(device()).mul_(2)
        except torch.OutOfMemoryError as error:
            errors.append(str(error))
            break
    if errors:
        for index in list(kept)[:len(kept) // 2]:
            del kept[index]
        for index in range(COUNT, COUNT + 4):
            kept[index] = make(index).to(device()).mul_(2)
    wrong = [index for index, tensor in kept.items() if bits(tensor) != bits(make(index).mul_(2))]
    for tensor in kept.values():
        record.tensor(tensor)
    record.finish(errors=errors, wrong=wrong, kept=len(kept))


if __name__ == "__main__":
    main()
