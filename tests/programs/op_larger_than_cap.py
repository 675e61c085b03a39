"""Single ops whose tensors are larger than the cap, one for each way an op can be refused.

Each is tried on tensors with known bytes; after an out-of-memory error the tensors must be what they were, after a
success what the CPU computes. The JSON line lists `errors` (op, type, text) and `wrong` (ops after which bytes were
wrong). The process ends normally in both cases.
"""
import torch

from common import Record, bits, device

WIDTH = 4096  # rows of 16 KiB
ROWS = 768    # 12 MiB a tensor


def allocating(a, b):
    return a + b


def in_place(a, b):
    return a.mul_(b)


def list_op(a, b):
    torch._foreach_add_([a], [b])
    return a


def matrix(a, b):
    return a @ b.T


def fused(a, b):
    state = [torch.zeros_like(a) for _ in range(2)]
    steps = [torch.zeros((), device=a.device)]
    torch._fused_adam_([a], [b], [state[0]], [state[1]], [], steps, lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0,
                       eps=1e-8, amsgrad=False, maximize=False)
    return a


def attempt(op, seed, record):
    random = torch.Generator().manual_seed(seed)
    before = [torch.randn(ROWS, WIDTH, generator=random) for _ in range(2)]
    ours = [t.to(device()).mul_(1) for t in before]
    after = [t.clone() for t in before]
    error, result = None, None
    try:
        result = op(*ours)
    except torch.OutOfMemoryError as caught:
        error = {"op": op.__name__, "type": type(caught).__name__, "text": str(caught)}
    except RuntimeError as caught:
        error = {"op": op.__name__, "type": "RuntimeError", "text": str(caught)}
    if error is None:
        expected = op(*after)
        wrong = bits(result) != bits(expected)
    else:
        wrong = False
    wrong = wrong or any(bits(a) != bits(b) for a, b in zip(ours, after))
    record.tensor(ours[0])
    return error, wrong


def main():
    record, errors, wrong = Record(), [], []
    for seed, op in enumerate([allocating, in_place, list_op, matrix, fused]):
        error, is_wrong = attempt(op, seed, record)
        if error:
            errors.append(error)
        if is_wrong:
            wrong.append(op.__name__)
    record.finish(errors=errors, wrong=wrong)


if __name__ == "__main__":
    main()
