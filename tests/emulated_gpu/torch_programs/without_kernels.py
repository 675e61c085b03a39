"""Kernels `none`: the real CUDA host code of each op runs, nothing is computed, nothing is touched that is not mapped."""
import re
import subprocess
import sys

import torch
import torch.nn.functional as F
from models import Gpt
from torch import nn


def alone_training_runs(device):
    for options in ({"foreach": True}, {"fused": True}):
        model = Gpt().to(device)
        optimizer = torch.optim.AdamW(model.parameters(), **options)
        for _ in range(2):
            ids = torch.randint(0, 128, (4, 32), device=device)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(ids).view(-1, 128), ids.view(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        assert loss.item() == 0.0


def alone_other_models_run(device):
    models = [(nn.LSTM(8, 16, 2), (4, 7, 8)), (nn.Conv2d(3, 8, 3), (2, 3, 8, 8)), (nn.BatchNorm1d(4), (6, 4)),
              (nn.RMSNorm(8), (4, 8))]
    for model, shape in models:
        output = model.to(device)(torch.randn(*shape).to(device))
        (output[0] if isinstance(output, tuple) else output).sum().backward()
        assert all(p.grad.shape == p.shape for p in model.parameters())


def alone_sparse_gradients_run(device):
    model = nn.Embedding(20, 4, sparse=True).to(device)
    optimizer = torch.optim.SparseAdam(model.parameters())
    model(torch.randint(0, 20, (3, 5), device=device)).sum().backward()
    optimizer.step()


def alone_generation_runs(device):
    model, ids = Gpt().to(device).eval(), torch.zeros(2, 4, dtype=torch.long).to(device)
    with torch.inference_mode():
        for _ in range(3):
            ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(-1), 1)], 1)
    assert ids.shape == (2, 7)


def alone_what_the_host_wrote_reads_back(device):
    small, large = torch.arange(1000), torch.ones(1 << 20)
    on_device = small.to(device), large.to(device)
    (on_device[0] + 1).sum()
    assert torch.equal(on_device[0].cpu(), small)
    assert on_device[0].sum().item() == 499500 and on_device[1].sum().item() == 0


def alone_large_memory_costs_nothing(device):
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1])
    big = torch.ones(100 << 30, dtype=torch.uint8, device=device)
    big.zero_()
    big.add_(1)
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1]) - before
    assert pages * 4096 < 256 << 20, pages


# Each op is given a tensor over memory that went back to the driver.
USE_FREED = """
import torch
def freed():
    block = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
    storage = torch._C._construct_storage_from_data_pointer(block.data_ptr(), block.device, 32 << 20)
    del block
    torch.cuda.empty_cache()
    return torch.empty(0, device="cuda").set_(storage, 0, (1024, 1024))
alive = torch.ones(1024, 1024, device="cuda")
for use in (
    lambda: alive + freed(),
    lambda: alive + freed().t(),
    lambda: freed().sum(),
    lambda: torch._foreach_add([alive, freed()], 1),
    lambda: torch.cat([alive, freed()]),
    lambda: alive @ freed(),
    lambda: torch.nn.functional.linear(alive, freed(), alive[0]),
):
    try:
        use()
    except RuntimeError:
        pass
"""


def alone_freed_memory_is_reported(device):
    done = subprocess.run([sys.executable, "-c", USE_FREED], capture_output=True, text=True)
    reports = re.findall(r"report: (.*(?:not mapped|not reserved).*)", done.stderr)
    kernels = ("vectorized_elementwise_kernel", "::elementwise_kernel", "reduce_kernel", "multi_tensor_apply_kernel",
               "CatArrayBatchedCopy", "cublasLtMatmul",
               "cublasSgemm_v2" if torch.__version__.startswith("2.11.") else "cublasGemmEx")
    missing = [kernel for kernel in kernels if not any(kernel in report for report in reports)]
    assert not missing, f"{missing}: {done.stderr}"
