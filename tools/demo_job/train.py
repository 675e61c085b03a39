"""Trains a byte-level GPT on the help texts that every Python ships. An ordinary script: all it wants is `cuda`.

bfloat16 autocast, dropout, gradient clipping, AdamW with its defaults. Prints a line per step. --result FILE writes
losses, times, torch's peak and a hash over all weights and optimizer state as JSON.
"""
import argparse
import ctypes
import hashlib
import json
import time

import torch
import torch.nn.functional as F
from pydoc_data import topics
from torch import nn

BATCH, CONTEXT, WIDTH, HEADS, LAYERS, DROPOUT = 20, 128, 576, 9, 2, 0.1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.drop = nn.Dropout(DROPOUT)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, ids, targets):
        x = self.drop(self.token(ids) + self.place.weight[:ids.shape[1]])
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def text() -> torch.Tensor:
    """All help texts as bytes."""
    joined = "\n".join(value for _, value in sorted(topics.topics.items()) if isinstance(value, str))
    return torch.frombuffer(bytearray(joined.encode()), dtype=torch.uint8)


def batch(corpus: torch.Tensor, random: torch.Generator, device: str):
    """Inputs and targets: BATCH windows of the text, the targets one byte further."""
    starts = torch.randint(0, len(corpus) - CONTEXT - 1, (BATCH,), generator=random)
    windows = torch.stack([corpus[start:start + CONTEXT + 1] for start in starts]).long().to(device)
    return windows[:, :-1], windows[:, 1:]


def state_hash(model, optimizer) -> str:
    """sha256 over the bytes of all weights and all optimizer state."""
    digest = hashlib.sha256()
    state = [(name, tensor) for name, tensor in model.state_dict().items()]
    for index, values in optimizer.state_dict()["state"].items():
        state += [(f"{index}.{key}", value) for key, value in values.items()]
    for name, tensor in state:
        held = tensor.detach().cpu().contiguous()
        digest.update(name.encode() + ctypes.string_at(held.data_ptr(), held.nbytes))
    return digest.hexdigest()


def torch_peak():
    """torch's own peak in bytes; None where the allocator in use keeps no statistics."""
    try:
        return torch.cuda.max_memory_allocated()
    except RuntimeError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--result", metavar="FILE")
    options = parser.parse_args()

    torch.manual_seed(0)
    corpus, random = text(), torch.Generator().manual_seed(1)
    model = GPT().to(options.device)
    optimizer = torch.optim.AdamW(model.parameters())
    losses, seconds = [], []
    for step in range(options.steps):
        start = time.perf_counter()
        with torch.autocast(options.device, dtype=torch.bfloat16):
            loss = model(*batch(corpus, random, options.device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
        print(f"step {step + 1:3}/{options.steps}  loss {losses[-1]:.4f}  {seconds[-1]:.2f} s", flush=True)
    if options.result:
        figures = {
            "parameters": sum(p.numel() for p in model.parameters()), "losses": [loss.hex() for loss in losses],
            "final_loss": losses[-1], "seconds": seconds, "peak_bytes": torch_peak(), "hash": state_hash(model, optimizer)}
        with open(options.result, "w") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    main()
