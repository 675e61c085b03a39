"""A training job whose speed was published: step_jobs.py NAME, one of JOBS. Runs a few steps in eager PyTorch, on whatever card there is.
A job is a generator that does a step each time."""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch.func import functional_call

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "dryrun"))
import models  # noqa: E402

STEPS = 3


def gpt(sequence: int, micro_batch: int, micro_batches: int):
    """What a card does of MPT-350m, which has the shape of GPT-2 medium: weights in FP32 that are cast to BF16 for each
    micro-batch, as FSDP does, all else in BF16; flash attention, no dropout; gradients are clipped."""
    with torch.device("cuda"):
        model = models.Gpt2(vocabulary=50368, width=1024, layers=24, heads=16, context=sequence, dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
    while True:
        for _ in range(micro_batches):
            ids = torch.randint(50000, (micro_batch, sequence + 1)).cuda()
            weights = {name: parameter.bfloat16() for name, parameter in model.named_parameters()}
            logits = functional_call(model, weights, ids[:, :-1])
            (F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) / micro_batches).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        yield


def resnet50(batch: int, mixed: bool):
    """ResNet-50 v1.5 with mixup and smoothed labels. `mixed`: FP16 autocast, a gradient scaler and channels last; else TF32."""
    torch.backends.cuda.matmul.allow_tf32 = True
    memory_format = torch.channels_last if mixed else torch.contiguous_format
    with torch.device("cuda"):
        model = models.resnet50().to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.256, momentum=0.875, weight_decay=3e-5)
    scaler = torch.amp.GradScaler("cuda", init_scale=128, enabled=mixed)
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=memory_format)  # the loader copies beside the compute
    labels = torch.randint(1000, (batch,), device="cuda")
    while True:
        share, order = 0.9, torch.randperm(batch, device="cuda")
        with torch.autocast("cuda", dtype=torch.float16, enabled=mixed):
            outputs = model(share * images + (1 - share) * images[order])
            loss = sum(part * F.cross_entropy(outputs, wanted, label_smoothing=0.1)
                       for part, wanted in ((share, labels), (1 - share, labels[order])))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield


JOBS = {
    "gpt2-medium-1024": lambda: gpt(1024, 64, 2),
    "gpt2-medium-2048": lambda: gpt(2048, 32, 2),
    "resnet50-amp": lambda: resnet50(256, True),
    "resnet50-tf32": lambda: resnet50(256, False),
}

if __name__ == "__main__":
    step = JOBS[sys.argv[1]]()
    for _ in range(STEPS):
        next(step)
