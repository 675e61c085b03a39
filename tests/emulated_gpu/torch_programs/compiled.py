"""torch.compile: Triton compiles real kernels for the card, their code is loaded and launched, and computes nothing."""
import os
import pathlib
import tempfile

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.between(x))


def alone_small_transformer_trains(device):
    with tempfile.TemporaryDirectory() as folder:  # nothing compiled before is used
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton",
                       "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        model = nn.Sequential(Block(), Block()).to(device)
        compiled = torch.compile(model)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(2):
            loss = compiled(torch.randn(2, 32, 64, device=device)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        kernels = list(pathlib.Path(folder).rglob("*.cubin"))
        assert len(kernels) > 4, kernels  # norms, GELU, their backward: for this card's architecture
