"""CUDA graphs of torch with kernels `none`: what is captured does not run, and each replay launches all of it again."""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
from models import Gpt
from torch import nn


class Counters(ctypes.Structure):  # counters_abi.h; more fields follow
    _fields_ = [(name, ctypes.c_uint64) for name in ("launches", "copies", "copied_bytes", "reports")] + \
               [("more", ctypes.c_uint64 * 16)]


def launches():
    counters = Counters()
    ctypes.CDLL("libcuda.so.1").weir_emulated_counters(ctypes.byref(counters))
    return counters.launches


def warmed_up(step):
    """Runs `step` twice on a side stream, as torch asks before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)


def settle():
    """After a capture of random numbers: torch 2.11 writes their seed on the capture's stream and, at the first replay, on
    the replay's, which nothing of its own orders."""
    torch.cuda.synchronize()


def alone_a_training_step_is_replayed(device):
    model = Gpt().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    ids = torch.zeros(4, 32, dtype=torch.long, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(ids).sum().backward()
        optimizer.step()

    warmed_up(step)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    settle()
    replays = []
    for _ in range(3):
        before = launches()
        ids.copy_(torch.randint(0, 128, (4, 32)))
        graph.replay()
        torch.cuda.synchronize()
        replays.append(launches() - before)
    assert replays[0] > 100 and len(set(replays)) == 1, replays


def alone_captured_work_does_not_run(device):
    x = torch.zeros(16, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        before = launches()
        x.add_(1)
        (x * 2).sum()
        assert launches() == before
    graph.replay()
    assert launches() == before + 3


def alone_graphed_callables_run(device):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)).to(device)
    model = torch.cuda.make_graphed_callables(model, (torch.randn(8, 16, device=device),))
    settle()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(8, 16, device=device)).sum().backward()
        optimizer.step()
    assert all(p.grad is not None for p in model.parameters())


def alone_side_streams_join_a_capture(device):
    x, side = torch.zeros(1000, device=device), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x[:500].add_(1)
        x[500:].add_(1)
        torch.cuda.current_stream().wait_stream(side)
        x.mul_(2)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "graph.dot")
        ctypes.CDLL("libcuda.so.1").cuGraphDebugDotPrint(ctypes.c_void_p(graph.raw_cuda_graph()), str(path).encode(), 0)
        text = path.read_text()
    assert text.count("shape=box") == 3 and text.count("->") == 2, text
    graph.replay()
    torch.cuda.synchronize()


def alone_pool_is_shared_between_graphs(device):
    x = torch.zeros(1 << 20, device=device)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        y = x + 1
    with torch.cuda.graph(second, pool=first.pool()):
        z = y * 2
    for graph in (first, second):
        graph.replay()
    assert z.shape == x.shape


def alone_what_capture_forbids_is_refused(device):
    x, recorded = torch.ones(4, device=device), torch.cuda.Event()
    recorded.record()
    for forbidden in (lambda: x.sum().item(), torch.cuda.synchronize, recorded.query):
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                x.add_(1)
                forbidden()
        except RuntimeError as error:
            assert "captur" in str(error), error
        else:
            raise AssertionError("it was not refused")
    torch.cuda.synchronize()
    assert x.sum().item() == 4.0  # nothing of the captures ran, and the device goes on


# The memory that a graph uses is gone when it is replayed; or nothing orders what it does with it.
MISUSE = """
import torch
x = torch.ones(32 << 20, dtype=torch.uint8, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.add_(1)
torch.cuda.synchronize()
if {freed}:
    del x
    torch.cuda.empty_cache()
else:
    with torch.cuda.stream(torch.cuda.Stream()):
        x.mul_(2)
graph.replay()
torch.cuda.synchronize()
"""


def alone_a_misused_graph_is_reported(device):
    for freed, pattern in ((True, r"report: launch with a pointer to device memory that is .*vectorized"),
                           (False, r"report: write of .* by .*vectorized.* is not ordered after the write by")):
        done = subprocess.run([sys.executable, "-c", MISUSE.format(freed=freed)], capture_output=True, text=True)
        assert re.search(pattern, done.stderr), done.stderr
