"""The process around the device: streams and events, pinned memory, workers, children, limits."""
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def case_two_forked_workers(device):
    data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
    model = torch.nn.Linear(8, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, labels in DataLoader(data, 8, num_workers=2, pin_memory=device == "cuda", shuffle=True):
        output = model(x.to(device, non_blocking=True))
        loss = torch.nn.functional.cross_entropy(output, labels.to(device, non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return list(model.parameters())


def alone_streams_and_events(device):
    stream = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        start.record()
        x = torch.ones(10, device=device) * 2
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and stream.query() and x.sum().item() == 20


def alone_children_are_left_alone(device):
    shell = subprocess.run(["/bin/sh", "-c", "echo out; exit 3"], capture_output=True, text=True)
    assert (shell.returncode, shell.stdout, shell.stderr) == (3, "out\n", "")
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def alone_device_is_the_profile(device):
    properties = torch.cuda.get_device_properties(0)
    assert properties.multi_processor_count == 132  # H200
    assert torch.cuda.mem_get_info()[1] == 143771 << 20  # device-profiles.md, read on hardware
    assert torch.cuda.get_device_capability() == (9, 0)


def alone_out_of_memory_is_torchs_own(device):
    try:
        torch.empty(200 << 30, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError as error:
        assert "CUDA out of memory. Tried to allocate 200.00 GiB" in str(error)
    else:
        raise AssertionError("200 GiB on a 140 GiB device")


def alone_an_operator_in_a_capture_is_refused(device):
    x = torch.zeros(4, device=device)
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.add_(1)
    except RuntimeError as error:  # of the end of the capture, which the operator's own made fail
        assert "previous error during capture" in str(error), error
        assert "aten::add_ cannot be captured with kernels cpu" in str(error.__context__), error.__context__
    else:
        raise AssertionError("captured an operator")
    assert x.add_(2).tolist() == [2.0] * 4


def alone_profiler_sees_the_ops(device):
    x = torch.ones(8, 8, device=device)
    with torch.profiler.profile() as profile:
        x @ x
    assert "aten::mm" in {event.name for event in profile.events()}


def alone_expandable_segments_work(device):
    program = "import torch; print(torch.ones(3 << 20, device='cuda').sum().item())"
    environment = os.environ | {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    child = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert child.stdout == "3145728.0\n", child.stderr
    assert "reports=0" in child.stderr
