"""Models of the sizes that were published, in plain torch: what `weir dryrun` is asked about. Made on the card."""
import torch
import torch.nn.functional as F
from torch import nn


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)


class Block(nn.Module):
    """Of GPT-2 and ViT: pre-norm, GELU, four times as wide."""

    def __init__(self, width, heads, causal, dropout):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + F.dropout(self.out(attend(q, k, v, is_causal=self.causal)), self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout)


class Gpt2(nn.Module):
    """Radford et al. 2019, the smallest; the head is the embedding."""

    def __init__(self, vocabulary=50257, width=768, layers=12, heads=12, context=1024, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, True, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return F.linear(self.norm(self.blocks(F.dropout(x, self.dropout))), self.tokens.weight)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, each = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(*sizes, bias=False) for sizes in (
            (width, width), (width, groups * each), (width, groups * each), (width, width)))
        self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in (
            (width, hidden), (width, hidden), (hidden, width)))

    def forward(self, x, turn):
        y = self.norm1(x)
        q, k, v = heads_of(self.q(y), self.heads), heads_of(self.k(y), self.groups), heads_of(self.v(y), self.groups)
        x = x + self.out(attend(rotated(q, *turn), rotated(k, *turn), v, is_causal=True, enable_gqa=True))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Llama(nn.Module):
    """The shape of Llama 3.2 1B; the head is the embedding."""

    def __init__(self, vocabulary=128256, width=2048, layers=16, heads=32, groups=8, hidden=8192):
        super().__init__()
        self.each = width // heads
        self.tokens, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, hidden) for _ in range(layers))

    def forward(self, ids):
        x = self.tokens(ids)
        pace = 500000 ** (-torch.arange(0, self.each, 2, device=x.device) / self.each)
        angles = torch.outer(torch.arange(ids.shape[1], device=x.device), pace).repeat(1, 2)
        turn = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, turn)
        return F.linear(self.norm(x), self.tokens.weight)


class T5Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.RMSNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, bias, memory=None):
        y = self.norm(x)
        memory = y if memory is None else memory
        q, k, v = (heads_of(layer(z), self.heads) for layer, z in ((self.q, y), (self.k, memory), (self.v, memory)))
        return x + self.out(attend(q, k, v, attn_mask=bias, scale=1.0))


class T5Layer(nn.Module):
    def __init__(self, width, heads, hidden, crossed):
        super().__init__()
        self.own, self.other = T5Attention(width, heads), T5Attention(width, heads) if crossed else None
        self.norm, self.up, self.down = nn.RMSNorm(width), nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x, bias, memory=None):
        x = self.own(x, bias)
        if self.other is not None:
            x = self.other(x, None, memory)
        return x + self.down(F.relu(self.up(self.norm(x))))


class T5Stack(nn.Module):
    def __init__(self, width, heads, hidden, layers, crossed, buckets=32):
        super().__init__()
        self.crossed, self.distances = crossed, nn.Embedding(buckets, heads)
        self.layers = nn.ModuleList(T5Layer(width, heads, hidden, crossed) for _ in range(layers))
        self.norm = nn.RMSNorm(width)

    def forward(self, x, memory=None):
        places = torch.arange(x.shape[1], device=x.device)
        nearest = (places[:, None] - places).abs().clamp(max=self.distances.num_embeddings - 1)
        bias = self.distances(nearest).permute(2, 0, 1)
        if self.crossed:
            bias = bias.masked_fill(places > places[:, None], float("-inf"))
        for layer in self.layers:
            x = layer(x, bias, memory)
        return self.norm(x)


class T5(nn.Module):
    """The shape of T5-small (Raffel et al. 2020), distances without logarithmic buckets; the head is the embedding."""

    def __init__(self, vocabulary=32128, width=512, heads=8, hidden=2048, layers=6):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.encoder = T5Stack(width, heads, hidden, layers, crossed=False)
        self.decoder = T5Stack(width, heads, hidden, layers, crossed=True)

    def forward(self, ids):
        return F.linear(self.decoder(self.tokens(ids[:, :128]), self.encoder(self.tokens(ids))), self.tokens.weight)


class Vit(nn.Module):
    """ViT-B/16 (Dosovitskiy et al. 2021), images of 224 x 224."""

    def __init__(self, width=768, layers=12, heads=12, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 197, width))
        self.blocks = nn.Sequential(*(Block(width, heads, False, 0.0) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def convolution(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.layers = nn.Sequential(convolution(inputs, width, 1), nn.ReLU(inplace=True), convolution(width, width, 3, stride),
                                    nn.ReLU(inplace=True), convolution(width, 4 * width, 1))
        self.shortcut = convolution(inputs, 4 * width, 1, stride) if inputs != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.layers(x) + self.shortcut(x), inplace=True)


def resnet50():
    """He et al. 2015, table 1; the stride is in the 3 x 3 convolution."""
    layers, inputs = [convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class UNet(nn.Module):
    """Ronneberger et al. 2015, padded and with batch norms."""

    def __init__(self, widths=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        def double(inputs, outputs):
            return nn.Sequential(convolution(inputs, outputs, 3), nn.ReLU(inplace=True), convolution(outputs, outputs, 3), nn.ReLU(inplace=True))
        self.down = nn.ModuleList(double(*sizes) for sizes in zip((3, *widths), widths))
        self.rise = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in reversed(widths[:-1]))
        self.up = nn.ModuleList(double(2 * width, width) for width in reversed(widths[:-1]))
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x if not kept else F.max_pool2d(kept[-1], 2))
            kept.append(x)
        for rise, layer, left in zip(self.rise, self.up, reversed(kept[:-1])):
            x = layer(torch.cat((left, rise(x)), 1))
        return self.head(x)


def train(name: str, batch: int, steps: int = 3):
    """Prints the parameters, the tensors that hold them, and what torch's allocator says of itself."""
    make, size = {"gpt2": (Gpt2, 1024), "llama": (Llama, 2048), "t5": (T5, 512), "vit": (Vit, 224), "resnet50": (resnet50, 224),
                  "unet": (UNet, 256)}[name]
    text = name in ("gpt2", "llama", "t5")
    with torch.device("cuda"):
        model = make().to(torch.bfloat16 if name == "llama" else torch.float32)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, fused=True)
    for _ in range(steps):
        inputs = torch.randint(1000, (batch, size)) if text else torch.randn(batch, 3, size, size)
        outputs = model(inputs.cuda())
        if name == "unet":
            labels = torch.randint(2, (batch, size, size))
        else:
            labels = torch.randint(1000, (batch * outputs.shape[1] if text else batch,))
        loss = F.cross_entropy(outputs.flatten(0, 1).float() if text else outputs, labels.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(sum(p.numel() for p in parameters), len(parameters), torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
