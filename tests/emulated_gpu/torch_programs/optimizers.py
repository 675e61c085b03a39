"""Every optimizer, as the same algorithm on both devices (foreach where CUDA would take it by default)."""
import torch
from torch import nn
from training import train

WAYS = [("AdamW", {"foreach": True}), ("AdamW", {"fused": True}), ("AdamW", {"foreach": False}),
        ("Adam", {"amsgrad": True, "foreach": True}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("SGD", {"lr": 0.1, "fused": True}), ("RMSprop", {"foreach": True}), ("Adagrad", {"foreach": True}),
        ("Adagrad", {"fused": True}), ("NAdam", {"foreach": True}), ("RAdam", {"foreach": True}),
        ("Adamax", {"foreach": True}), ("Adadelta", {"foreach": True}), ("ASGD", {"foreach": True}),
        ("Rprop", {"foreach": True}), ("Adafactor", {"foreach": True}), ("Muon", {})]
if torch.__version__.startswith("2.11."):
    WAYS.remove(("Adagrad", {"fused": True}))  # not on CUDA yet


def case_all(device):
    results = []
    for name, options in WAYS:
        biased = name != "Muon"  # takes matrices only
        model = nn.Sequential(nn.Linear(6, 8, bias=biased), nn.Tanh(), nn.Linear(8, 2, bias=biased)).to(device)
        x = torch.randn(5, 6).to(device)
        optimizer = getattr(torch.optim, name)(model.parameters(), **options)
        results += train(model, optimizer, lambda model=model, x=x: model(x).square().mean())
    return results


def case_lbfgs(device):
    model, x = nn.Linear(6, 2).to(device), torch.randn(5, 6).to(device)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return [optimizer.step(closure)] + list(model.parameters())
