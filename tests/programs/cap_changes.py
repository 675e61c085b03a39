"""The job sets its own cap by `set_per_process_memory_fraction`: what is above it leaves, at once, and comes back right.

The JSON line has `lowered` (the bytes that the fraction stands for), `reserved` (bytes held after that), `total` (of mem_get_info after
that), `fraction` (as read back, in bytes), and `wrong` (tensors whose bytes changed).
"""
import torch

from common import Record, bits, device

COUNT, SHAPE = 24, (512, 1024)  # 24 tensors of 2 MiB
LOWERED = 20 << 20


def make(index):
    """A tensor on the CPU that only its index determines."""
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(index))


def main():
    record = Record()
    kept = [make(index).to(device()).mul_(2) for index in range(COUNT)]
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(LOWERED / total)
    _, told = torch.cuda.mem_get_info()
    reserved = torch.cuda.memory_reserved()
    wrong = [index for index, tensor in enumerate(kept) if bits(tensor) != bits(make(index).mul_(2))]
    fraction = round(torch.cuda.get_per_process_memory_fraction() * total)
    torch.cuda.set_per_process_memory_fraction(1.0)
    for tensor in kept:
        record.tensor(tensor)
    record.finish(wrong=wrong, lowered=LOWERED, reserved=reserved, total=told, fraction=fraction)


if __name__ == "__main__":
    main()
