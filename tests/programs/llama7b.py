"""One training step of a Llama-shaped model with 7 billion parameters, built on the device in bfloat16, with AdamW.

For kernels `none`: it shows that host code, memory and time are in order, not that it learns.
"""
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from common import Record, device

LAYERS, WIDTH, HIDDEN, HEADS, VOCABULARY, CONTEXT = 32, 4096, 11008, 32, 32000, 2048


def rotate(x, angles):
    """Rotary position embedding; x: batch, heads, length, head width."""
    a, b = x.float().chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, angles):
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate(q, angles), rotate(k, angles), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def main():
    start = time.monotonic()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device()):
        token = nn.Embedding(VOCABULARY, WIDTH)
        layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        norm, head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        places = torch.arange(CONTEXT, dtype=torch.float32)
        angles = places[:, None] * 10000.0 ** (-torch.arange(64, dtype=torch.float32) / 64)
        ids = torch.randint(0, VOCABULARY, (1, CONTEXT + 1))
    model = nn.ModuleList([token, layers, norm, head])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = token(ids[:, :-1])
    for layer in layers:
        x = layer(x, angles)
    loss = F.cross_entropy(head(norm(x)).flatten(0, 1).float(), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    record = Record()
    record.loss(loss)
    parameters = sum(p.numel() for p in model.parameters())
    seconds = time.monotonic() - start
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{parameters / 1e9:.2f} billion parameters, {seconds:.1f} s, {rss / 2**30:.2f} GiB of RAM", file=sys.stderr)
    record.finish(parameters=parameters, seconds=seconds, rss_bytes=rss)


if __name__ == "__main__":
    main()
