"""Hugging Face Accelerate: an unmodified loop with bf16 autocast, gradient accumulation and clipping (`requirements.txt`)."""
import torch
from accelerate import Accelerator

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


def main():
    torch.manual_seed(50)
    accelerator = Accelerator(cpu=device().type == "cpu", mixed_precision="bf16", gradient_accumulation_steps=2)
    texts = torch.utils.data.DataLoader(tokens((BATCH * 4, CONTEXT + 1), VOCABULARY, 51), batch_size=BATCH)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, texts = accelerator.prepare(model, optimizer, texts)
    record = Record()
    for ids in texts:
        with accelerator.accumulate(model):
            with accelerator.autocast():
                loss = model.loss(ids)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        record.loss(loss)
    record.finish(accelerator.unwrap_model(model), optimizer.optimizer)


if __name__ == "__main__":
    main()
