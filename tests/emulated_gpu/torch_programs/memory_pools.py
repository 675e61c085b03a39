"""Torch on its cudaMallocAsync backend: training in a child process for each kind of kernels, the numbers of kernels `cpu`
compared with this process, which has torch's own allocator."""
import os
import re
import subprocess
import sys

import torch
from models import Gpt


def train():
    torch.manual_seed(1)
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream()
    losses = []
    for _ in range(3):
        ids = torch.randint(0, 128, (4, 32), device="cuda")
        loss = torch.nn.functional.cross_entropy(model(ids).view(-1, 128), ids.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # freed on one stream after its use on another
            doubled = loss.detach() * 2
        loss.record_stream(side)
        torch.cuda.current_stream().wait_stream(side)
        losses.append(doubled.item())
    torch.cuda.empty_cache()
    return losses


def alone_training_runs_on_both_kernels(device):
    expected = train()
    for kernels in ("cpu", "none"):
        environment = os.environ | {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync", "WEIR_KERNELS": kernels}
        done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        backend, peak, reserved, *losses = done.stdout.split()
        assert backend == "cudaMallocAsync" and 0 < int(peak) <= int(reserved), done.stdout
        assert kernels == "none" or [float(loss) for loss in losses] == expected, (losses, expected)
        assert re.search(r"reports=0$", done.stderr.strip()), done.stderr


if __name__ == "__main__":
    values = train()
    print(torch.cuda.get_allocator_backend(), torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), *values)
