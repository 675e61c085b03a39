"""torch.profiler with shapes, memory and stacks records a training: it reads the address of every tensor it meets."""
import torch
from torch.profiler import ProfilerActivity, profile

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


def main():
    torch.manual_seed(21)
    model = GPT().to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for step in range(2):
        ids = tokens((BATCH, CONTEXT + 1), VOCABULARY, step).to(device())
        # The first step fills the card, so that the profiler starts with tensors that have left it.
        with profile(activities=[ProfilerActivity.CPU], record_shapes=step > 0, profile_memory=step > 0,
                     with_stack=step > 0) as profiler:
            loss = model.loss(ids)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        assert any("Optimizer.step" in event.name for event in profiler.events())
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
