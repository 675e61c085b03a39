"""Where arguments come from: torch's own test inputs, the calls written in calls.py, and the schema itself.

A source has a name ("opinfo add", "schema aten::add.out") and can be run again by it: that is how a row of the table
is checked without making the whole table. Runs in a worker, under the probe.
"""
import random
import re
import sys
import types
import unittest
import warnings

import numpy
import torch

import calls
import cudnn_calls  # noqa: F401: adds to calls.CALLS
import from_schema

# torch's test package imports it for the base class of its tests only.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase, assert_expected_inline=None))

SAMPLES = 8        # of each operator and data type
MORE_DTYPES = (torch.int64, torch.complex64, torch.bfloat16, torch.bool, torch.uint8)
# Sources whose operators run in cuDNN where it is on, and in torch's own kernels where it is off: both are run.
CUDNN_HAS = re.compile("^(opinfo|module) .*(conv|rnn|gru|lstm|batch_?norm|instance_?norm|ctc|grid|attention)", re.IGNORECASE)
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def op_infos() -> dict:
    from torch.testing._internal import common_methods_invocations as methods
    foreach = getattr(methods, "foreach_op_db", None)  # 2.15; before, its parts
    if foreach is None:
        kinds = ("unary", "binary", "pointwise", "reduce", "other")
        foreach = [info for kind in kinds for info in getattr(methods, f"foreach_{kind}_op_db", ())]
    found = {}
    for info in [*methods.op_db, *foreach]:
        name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
        found.setdefault(name.replace(" ", "_"), info)
    return found


def attempt(function, *args, **kwargs):
    """The result, or None: samples that do not run on this device are of no interest."""
    try:
        return function(*args, **kwargs)
    except Exception:  # of any kind: the sample does not run here
        return None


def take(samples, count):
    """The first samples of an iterator that may raise."""
    taken = []
    try:
        for sample in samples:
            taken.append(sample)
            if len(taken) == count:
                break
    except Exception:  # as in attempt()
        pass
    return taken


def tensors_in(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in tensors_in(item)]
    return []


def moved(value):
    """Samples made on the CPU, on the card: their bytes are there even though no kernel runs."""
    if isinstance(value, torch.Tensor):
        return value.detach().cuda().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: moved(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(moved(item) for item in value)
    return torch.device("cuda") if value in ("cpu", torch.device("cpu")) else value


def backward(result):
    outputs = [t for t in tensors_in(result) if t.requires_grad and (t.is_floating_point() or t.is_complex())]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs], retain_graph=True)


def dtypes_of(info):
    supported = info.supported_dtypes("cuda")
    first = [t for t in (torch.float32, torch.float64, torch.bfloat16, torch.int64) if t in supported][:1]
    return first + [t for t in MORE_DTYPES if t in supported and t not in first]


def run_samples(function, samples, count, grad):
    for sample in take(samples, count):
        result = attempt(function, sample.input, *sample.args, **sample.kwargs)
        if grad:
            attempt(backward, result)


def run_moved(function, samples, count, grad):
    for sample in take(samples, count):
        given = attempt(moved, (sample.input, sample.args, sample.kwargs))
        if given is not None:
            result = attempt(function, given[0], *given[1], **given[2])
            if grad:
                attempt(backward, result)


def run_op_info(info):
    for position, dtype in enumerate(dtypes_of(info)):
        grad = position == 0 and dtype.is_floating_point and info.supports_autograd
        count = SAMPLES if position == 0 else 3
        run_samples(info, info.sample_inputs("cuda", dtype, requires_grad=grad), count, grad)
        run_moved(info, info.sample_inputs("cpu", dtype, requires_grad=grad), count, grad)
        inplace = info.get_inplace()
        if inplace is not None:
            run_samples(inplace, info.sample_inputs("cuda", dtype), 3, False)


def run_sparse(info, layout):
    for dtype in dtypes_of(info)[:2]:
        grad = dtype.is_floating_point and info.supports_autograd
        run_moved(info, info.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=grad), SAMPLES, grad)


def run_module(info):
    for training in (True, False):
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
        for sample in take(inputs, SAMPLES):
            build = sample.constructor_input
            module = attempt(info.module_cls, *build.args, **build.kwargs)
            if module is None or sample.forward_input is None:
                continue
            module = module.cuda().train(training)
            given = moved((tuple(sample.forward_input.args), sample.forward_input.kwargs))
            attempt(backward, attempt(module, *given[0], **given[1]))


def run_optimizer(info):
    from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs as configs
    for config in take(configs("cuda", torch.float32, info), 200):
        weights = [torch.nn.Parameter(torch.rand(8, 8, device="cuda")) for _ in range(3)]
        optimizer = attempt(info.optim_cls, weights, **config.kwargs)
        if optimizer is None:
            continue
        for weight in weights:
            weight.grad = torch.rand_like(weight)
        for _ in range(2):
            attempt(optimizer.step, (lambda: torch.ones((), device="cuda")) if info.step_requires_closure else None)


def all_names() -> list:
    """Every source but those of single schemas, in a fixed order."""
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.common_optimizers import optim_db
    infos = op_infos()
    names = [f"call {name}" for name in sorted(calls.CALLS)]
    names += [f"opinfo {name}" for name in infos]
    for layout in SPARSE_LAYOUTS:
        kind = str(layout).removeprefix("torch.")
        flag = "supports_" + kind.removesuffix("_coo")
        names += [f"{kind} {name}" for name, info in infos.items() if getattr(info, flag)]
    names += [f"module {info.formatted_name}" for info in module_db]
    names += [f"optimizer {info.optim_cls.__name__}" for info in optim_db]
    return list(dict.fromkeys(names))


def run(name: str) -> None:
    """Runs one source; the probe sees what it does."""
    warnings.simplefilter("ignore")
    run_once(name)
    if CUDNN_HAS.search(name):
        with torch.backends.cudnn.flags(enabled=False):
            run_once(name)


def run_once(name: str) -> None:
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)
    kind, what = name.split(" ", 1)
    if kind == "call":
        calls.CALLS[what]()
    elif kind == "schema":
        from_schema.run(what)
    elif kind == "opinfo":
        run_op_info(op_infos()[what])
    elif kind == "module":
        from torch.testing._internal.common_modules import module_db
        for info in module_db:
            if info.formatted_name == what:
                run_module(info)
    elif kind == "optimizer":
        from torch.testing._internal.common_optimizers import optim_db
        for info in optim_db:
            if info.optim_cls.__name__ == what:
                run_optimizer(info)
    else:
        run_sparse(op_infos()[what], getattr(torch, kind))
