"""Scaled dot product attention: masks, scales, grouped heads, dropout, types; all paths that the CPU would take."""
import itertools

import torch
import torch.nn.functional as F


def case_all_ways(device):
    results = []
    ways = [{"is_causal": True}, {}, {"dropout_p": 0.2}, {"is_causal": True, "scale": 0.3}, {"mask": torch.bool},
            {"mask": torch.float32}]
    for way, width, dtype in itertools.product(ways, (8, 6), (torch.float32, torch.bfloat16)):
        options = {name: value for name, value in way.items() if name != "mask"}
        mask = torch.randn(2, 1, 6, 6).to(device)
        if way.get("mask") is torch.bool:
            options["attn_mask"] = mask > -0.5
        elif "mask" in way:
            options["attn_mask"] = mask.to(dtype)
        q, k, v = (torch.randn(2, 3, 6, width).to(dtype).to(device).requires_grad_() for _ in range(3))
        output = F.scaled_dot_product_attention(q, k, v, **options)
        output.float().square().sum().backward()
        results += [output, q.grad, k.grad, v.grad]
    return results


def case_grouped_heads(device):
    q, kv = torch.randn(2, 8, 6, 16).to(device), torch.randn(2, 2, 6, 16).to(device)
    return [F.scaled_dot_product_attention(q, kv, kv, is_causal=True, enable_gqa=True)]


def case_inference(device):
    q = torch.randn(2, 8, 6, 16).to(device)
    with torch.inference_mode():
        return [F.scaled_dot_product_attention(q, q, q)]
