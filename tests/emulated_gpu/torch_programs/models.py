"""Small models of each kind, trained for a few steps."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from training import train


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(self.norm1(x)).view(shape).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, vocabulary=128, width=64, layers=2, heads=4, length=32, recompute=False):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.recompute = recompute

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))


def gpt_steps(device, optimizer=None, recompute=False, bf16=False):
    model = Gpt(recompute=recompute).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **(optimizer or {}))
    results = []
    for _ in range(3):
        ids = torch.randint(0, 128, (4, 32)).to(device)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
            logits = model(ids)
        loss = F.cross_entropy(logits.float().view(-1, 128), ids.roll(-1, 1).view(-1))
        loss.backward()
        results += [loss.detach(), nn.utils.clip_grad_norm_(model.parameters(), 1.0)]
        optimizer.step()
        optimizer.zero_grad()
    return results + list(model.parameters())


def case_gpt(device):
    return gpt_steps(device)


def case_gpt_fused_optimizer(device):
    return gpt_steps(device, {"fused": True})


def case_gpt_recomputed(device):
    return gpt_steps(device, recompute=True)


def case_gpt_bf16_autocast(device):
    return gpt_steps(device, bf16=True)


def case_convolutions(device):
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=8),
        nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 4, 3, stride=2), nn.Conv2d(4, 4, 3, dilation=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(4, 10)).to(device)
    images, labels = torch.randn(4, 3, 16, 16).to(device), torch.randint(0, 10, (4,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return train(model, optimizer, lambda: F.cross_entropy(model(images), labels))


def case_transformer_layers(device):
    encoder = nn.TransformerEncoderLayer(16, 4, 32, 0.1, batch_first=True).to(device)
    decoder = nn.TransformerDecoderLayer(16, 4, 32, 0.1, batch_first=True).to(device)
    x = torch.randn(2, 5, 16).to(device)
    both = nn.ModuleList([encoder, decoder])
    results = train(both, torch.optim.AdamW(both.parameters()), lambda: decoder(x, encoder(x)).square().mean())
    encoder.eval()
    with torch.inference_mode():
        return results + [encoder(x)]


def case_mixture_of_experts(device):
    experts = [nn.Linear(8, 8).to(device) for _ in range(4)]
    gate, x = nn.Linear(8, 4).to(device), torch.randn(10, 8).to(device)
    weights, chosen = gate(x).softmax(-1).topk(2)
    output = torch.zeros_like(x)
    for index, expert in enumerate(experts):
        rows, slots = torch.where(chosen == index)
        output.index_add_(0, rows, expert(x[rows]) * weights[rows, slots, None])
    output.square().sum().backward()
    return [output, gate.weight.grad] + [expert.weight.grad for expert in experts]


def case_generation(device):
    model = Gpt().to(device).eval()
    ids = torch.randint(0, 128, (2, 4)).to(device)
    with torch.inference_mode():
        for _ in range(8):
            ids = torch.cat([ids, torch.multinomial((model(ids)[:, -1] / 0.8).softmax(-1), 1)], 1)
    return [ids]


def case_gradient_penalty(device):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    x = torch.randn(5, 4).to(device).requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    ((slope.norm(2, 1) - 1) ** 2).mean().backward()
    return [slope, model[0].weight.grad, model[2].weight.grad]


def case_gradient_scaler(device):
    model = nn.Linear(6, 4).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
    x, results = torch.randn(5, 6).to(device), []
    for step in range(4):
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        if step == 2:
            model.weight.grad[0, 0] = float("inf")
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        results.append(scaler.get_scale())
    return results + list(model.parameters())
