"""Trains a GPT with LAMB (You et al., 2019), written the way people write optimizers in a training script."""
import torch

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                mean, square = state["exp_avg"], state["exp_avg_sq"]
                mean.lerp_(p.grad, 1 - beta1)
                square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                mean_hat = mean / (1 - beta1 ** state["step"])
                square_hat = square / (1 - beta2 ** state["step"])
                update = mean_hat / (square_hat.sqrt() + group["eps"])
                update.add_(p, alpha=group["weight_decay"])
                weight_norm, update_norm = p.norm(), update.norm()
                trust = torch.where(
                    (weight_norm > 0) & (update_norm > 0), weight_norm / update_norm, torch.ones_like(weight_norm))
                p.sub_(update * trust * group["lr"])


def main():
    torch.manual_seed(2)
    model = GPT().to(device())
    optimizer = Lamb(model.parameters())
    record = Record()
    for step in range(3):
        loss = model.loss(tokens((BATCH, CONTEXT + 1), VOCABULARY, step).to(device()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record.loss(loss)
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
