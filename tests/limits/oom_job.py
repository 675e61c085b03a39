"""A job that runs out of memory on purpose; prints a line of JSON with an error or null for each scenario.

Usage: oom_job.py SCENARIO..., the first on the first device and so on. The torch that runs it need not know of Weir.
"""
import json
import sys

import torch

MIB = 1 << 20
keep = []  # alive to the end


def tensor(size, device):
    """Of `size` MiB, made by an op and then the input of one: it may leave."""
    return torch.ones(size << 18, device=device).mul_(1)


def addition(device):
    """12 + 12 MiB make 12, beside 48 that nobody needs."""
    keep.extend(tensor(8, device) for _ in range(6))
    x, y = tensor(12, device), tensor(12, device)
    return x + y


def in_place(device):
    x, y = tensor(12, device), tensor(12, device)
    keep.extend(tensor(8, device) for _ in range(2))
    return x.add_(y)


def escaped(device):
    """A raw kernel was given the address of 12 MiB."""
    keep.append(tensor(12, device))
    keep[-1].data_ptr()
    return addition(device)


def floor(device):
    """Small tensors never leave; two of these fit one slab."""
    keep.extend(torch.ones(192 << 10, device=device) for _ in range(12))


def full_ram(device):
    keep.extend(tensor(8, device) for _ in range(7))


def native(device):
    """More than the card has, on torch's own allocator."""
    return torch.empty(torch.cuda.get_device_properties(device).total_memory, dtype=torch.uint8, device=device)


def main():
    errors = []
    for index, scenario in enumerate(sys.argv[1:]):
        try:
            globals()[scenario](torch.device("cuda", index))
            errors.append(None)
        except RuntimeError as error:  # OutOfMemoryError, but for in-place ops on torch 2.11
            if "CUDA out of memory" not in str(error):
                raise
            errors.append(str(error))
        keep.clear()
    print(json.dumps(errors))


if __name__ == "__main__":
    main()
