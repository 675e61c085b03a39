"""The models that the programs train. Sizes: nearly all bytes are in tensors of 1 to 8 MiB."""
import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 1024
BATCH, CONTEXT, WIDTH, HEADS = 4, 128, 576, 9


class Block(nn.Module):
    """A pre-norm transformer block: attention and a GELU layer four times as wide."""

    def __init__(self, width: int = WIDTH, heads: int = HEADS, dropout: float = 0.1):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, position: int = 0):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:  # keys and values of all earlier tokens: cache[0], cache[1]
            cache[0][:, :, position:position + length] = k
            cache[1][:, :, position:position + length] = v
            k, v = cache[0][:, :, :position + length], cache[1][:, :, :position + length]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, layers: int = 2, width: int = WIDTH, heads: int = HEADS, vocabulary: int = VOCABULARY,
                 context: int = CONTEXT, dropout: float = 0.1):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids, run=lambda block, x: block(x)):
        """Logits. `run` calls each block: activation checkpointing replaces it."""
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = run(block, x)
        return self.head(self.norm(x))

    def loss(self, ids, **options):
        logits = self(ids[:, :-1], **options)
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


class Perceptron(nn.Sequential):
    """Linear layers with leaky ReLU between them; `widths` lists all sizes, input first."""

    def __init__(self, *widths: int):
        layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
        super().__init__(*layers[:-1])
