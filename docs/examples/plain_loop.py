"""A plain training loop: a small GPT, made of torch.nn alone, learns to continue sequences of numbers."""
import torch
from torch import nn

VOCABULARY, CONTEXT, WIDTH, BATCH, STEPS = 1024, 128, 576, 4, 4


class GPT(nn.Module):
    def __init__(self, layers: int = 3):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, nhead=9, dim_feedforward=4 * WIDTH, activation="gelu",
                                                               batch_first=True, norm_first=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        x = self.token(ids) + self.place.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def batches():
    """Sequences that count upwards from a random number, by a random stride."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        start, stride = torch.randint(1, VOCABULARY, (2, BATCH, 1), generator=generator)
        yield (start + stride * torch.arange(CONTEXT + 1)) % VOCABULARY


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = GPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, ids in enumerate(batches()):
        ids = ids.to(device)
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item()}")
    return model, optimizer


if __name__ == "__main__":
    main()
