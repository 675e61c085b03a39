"""Inference: one forward pass over a prompt, then tokens one by one with a KV cache. Nearly all bytes are weights."""
import torch

from common import Record, device, tokens
from models import GPT, VOCABULARY

BATCH, PROMPT, NEW = 2, 100, 12


@torch.inference_mode()
def main():
    torch.manual_seed(17)
    model = GPT(layers=6, context=256).to(device()).eval()
    caches = [torch.zeros(2, BATCH, 9, 256, 64, device=device()) for _ in model.blocks]

    def forward(ids, position):
        places = torch.arange(position, position + ids.shape[1], device=device())
        x = model.token(ids) + model.place(places)
        for block, cache in zip(model.blocks, caches):
            x = block(x, cache, position)
        return model.head(model.norm(x))[:, -1]

    record = Record()
    ids = tokens((BATCH, PROMPT), VOCABULARY, 18).to(device())
    logits, made = forward(ids, 0), []
    for position in range(PROMPT, PROMPT + NEW):
        record.tensor(logits)
        made.append(logits.argmax(1, keepdim=True))
        logits = forward(made[-1], position)
    produced = torch.cat(made, 1)
    record.tensor(produced)
    record.finish(model, tokens=produced.tolist())


if __name__ == "__main__":
    main()
