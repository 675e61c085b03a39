"""The bytes that torch's ops read and write are checked against the order of the streams, with both kinds of kernels.

The cases run in a child process each kind of kernels, which counts reports (WEIR_EMULATED_REPORTS=count) instead of printing.
"""
import ctypes
import os
import pathlib
import subprocess
import sys

import torch


def on_two_streams(first, second, wait=False):
    """Runs `second` on a stream that comes after `first` only if told to."""
    torch.cuda.synchronize()
    first()
    stream = torch.cuda.Stream()
    if wait:
        stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        second()
    torch.cuda.synchronize()


def reports_of_cases():
    x, matrix = torch.ones(1000, device="cuda"), torch.zeros(64, 64, device="cuda")
    norm, image = torch.nn.BatchNorm1d(16).cuda(), torch.ones(8, 16, device="cuda")
    many = [torch.ones(100, device="cuda") for _ in range(300)]
    sparse = torch.eye(8, device="cuda").to_sparse()
    pinned, target = torch.ones(10000).pin_memory(), torch.zeros(10000, device="cuda")
    made = []

    def pinned_source(write):
        target.copy_(pinned, non_blocking=True)
        if write:
            pinned.fill_(7)

    cases = {
        "write after write": (1, lambda: on_two_streams(lambda: x.add_(1), lambda: x.mul_(2))),
        "ordered write": (0, lambda: on_two_streams(lambda: x.add_(1), lambda: x.mul_(2), wait=True)),
        "two reads": (0, lambda: on_two_streams(lambda: x.sum(), lambda: x.mean())),
        "write after read": (1, lambda: on_two_streams(lambda: made.append(x + 1), lambda: x.zero_())),
        "read of a result": (1, lambda: on_two_streams(lambda: made.append(x + 1), lambda: made.append(made[-1] * 2))),
        "columns": (0, lambda: on_two_streams(lambda: matrix[:, :32].add_(1), lambda: matrix[:, 32:].add_(1))),
        "overlapping columns": (1, lambda: on_two_streams(lambda: matrix[:, :33].add_(1), lambda: matrix[:, 32:].add_(1))),
        "product": (1, lambda: on_two_streams(lambda: matrix.add_(1), lambda: matrix @ matrix)),
        "statistics of batch norm": (1, lambda: on_two_streams(lambda: norm(image), lambda: norm.running_mean + 1)),
        "list op": (1, lambda: on_two_streams(lambda: torch._foreach_add_(many, 1), lambda: many[299].mul_(2))),
        "part of a list": (0, lambda: on_two_streams(lambda: torch._foreach_add_(many[:299], 1), lambda: many[299].mul_(2))),
        "host write to a pinned source": (1, lambda: (pinned_source(True), torch.cuda.synchronize())),
        "untouched pinned source": (0, lambda: (pinned_source(False), torch.cuda.synchronize())),
    }
    if os.environ["WEIR_KERNELS"] == "cpu":  # the real host code takes these pointers where no argument shows them
        cases["values of a sparse tensor"] = \
            (1, lambda: on_two_streams(lambda: sparse._values().mul_(2), lambda: sparse + sparse))
    return cases


class Counters(ctypes.Structure):  # counters_abi.h; more fields follow
    _fields_ = [("launches", ctypes.c_uint64), ("copies", ctypes.c_uint64), ("copied_bytes", ctypes.c_uint64),
                ("reports", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 60)]


def report_count():
    emulator = ctypes.CDLL(str(pathlib.Path(os.environ["LD_PRELOAD"]).parent / "libcuda.so.1"))
    counters = Counters()
    emulator.weir_emulated_counters(ctypes.byref(counters))
    return counters.reports


def check_cases():
    wrong = []
    for name, (expected, case) in reports_of_cases().items():
        before = report_count()
        case()
        if report_count() - before != expected:
            wrong.append(f"{name}: {report_count() - before} reports instead of {expected}")
    sys.exit("\n".join(wrong) or 0)


def child(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True,
                          cwd=pathlib.Path(__file__).parent)


def alone_reports_are_where_they_should_be(device):
    torch.ones(1, device=device)
    for kernels in ("cpu", "none"):
        done = child("import order; order.check_cases()", WEIR_KERNELS=kernels, WEIR_EMULATED_REPORTS="count")
        assert done.returncode == 0, f"kernels {kernels}:\n{done.stderr}"
        assert "report:" not in done.stderr


def alone_abort_ends_the_process_at_the_first_report(device):
    code = "import order, torch; x = torch.ones(9, device='cuda'); order.on_two_streams(lambda: x.add_(1), lambda: x.mul_(2)); " \
           "print('went on')"
    done = child(code, WEIR_EMULATED_REPORTS="abort")
    assert (done.returncode, done.stdout) == (70, ""), done.stderr
    assert done.stderr.count("report:") == 1 and "WEIR_EMULATED_REPORTS=abort" in done.stderr
    assert "aten::mul_" in done.stderr and "aten::add_" in done.stderr  # both sides
