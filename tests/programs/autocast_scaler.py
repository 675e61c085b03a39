"""Mixed precision: bfloat16 autocast, GradScaler, gradient clipping on the unscaled gradients."""
import torch

from common import Record, device, tokens
from models import CONTEXT, GPT, VOCABULARY


def main():
    torch.manual_seed(3)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device().type, init_scale=2.0 ** 10)
    record = Record()
    for step in range(3):
        ids = tokens((8, CONTEXT + 1), VOCABULARY, step).to(device())
        with torch.autocast(device().type, dtype=torch.bfloat16):
            loss = model.loss(ids)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
