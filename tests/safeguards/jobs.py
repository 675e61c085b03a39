"""What the jobs of this folder share: a list of them, tensors at a tight cap, and raw accesses as C++ code makes them.

A job is a function that raises when something is wrong. It runs in a process of its own, so CUDA starts in it.
"""
import ctypes
import dataclasses

import torch

MIB = 1 << 20
CAP = 32  # MiB: tensors here have some MiB each, so a handful fills it
FLOATS = MIB // 4


@dataclasses.dataclass(frozen=True)
class Job:
    function: object
    safeguards: tuple
    settings: dict


def registry():
    """(JOBS, notices) of one module: `@notices("Safeguard", ..., kernels=, policy=)` adds a job to JOBS."""
    jobs = []

    def notices(*safeguards, kernels="cpu", policy="lru"):
        settings = {"WEIR_KERNELS": kernels, "WEIR_POLICY": policy, "WEIR_VRAM": f"{CAP}MiB", "WEIR_RAM": "512MiB"}

        def add(function):
            jobs.append(Job(function, safeguards, settings))
            return function

        return add

    return jobs, notices


def made(value: float, mib: int = 4) -> torch.Tensor:
    """A tensor that an op has had as its argument, so that it may leave."""
    return torch.empty(mib * FLOATS, device="cuda").fill_(value)


def fill_card() -> list:
    """Tensors that together take the whole cap; they may leave."""
    return [made(0.0) for _ in range(CAP // 4)]


def evicted(value: float, mib: int = 4, make=made) -> torch.Tensor:
    """`make(value, mib)`, and then everything that may leave has left."""
    tensor = make(value, mib)
    address = raw_address(tensor)
    fill_card()
    expect(not is_resident(address), "the job's tensor was not evicted")
    return tensor


def expect(truth: bool, text: str) -> None:
    if not truth:
        raise AssertionError(text)


def expect_value(tensor: torch.Tensor, value: float) -> None:
    got = tensor.detach().cpu()
    expect(bool((got == value).all()), f"wrong bytes: {got.flatten()[:4].tolist()} for {value}")


def is_resident(address: int) -> bool:
    return bool(ctypes.CDLL("libweir_core.so").weir_is_resident(ctypes.c_void_p(address)))


def raw_address(tensor: torch.Tensor) -> int:
    """As C++ code asks for it: Weir's wrapper of data_ptr() sees nothing."""
    return torch._C.TensorBase.data_ptr(tensor)


def read_raw(address: int, value: float, mib: int = 4, stream=None) -> None:
    """Reads `mib` MiB at an address, which must all be `value`: an access without op or tensor."""
    host = torch.zeros(mib * FLOATS)
    stream = stream or torch.cuda.current_stream()
    code = ctypes.CDLL(None).cudaMemcpyAsync(ctypes.c_void_p(host.data_ptr()), ctypes.c_void_p(address),
                                             ctypes.c_size_t(mib * MIB), 2, ctypes.c_void_p(stream.cuda_stream))
    expect(code == 0, f"cudaMemcpyAsync failed with {code}")
    stream.synchronize()
    expect(bool((host == value).all()), f"wrong bytes at the address: {host[:4].tolist()} for {value}")


def write_raw(address: int, mib: int = 4, stream=None) -> None:
    """Queues zeros for an address, behind Weir's back."""
    stream = stream or torch.cuda.current_stream()
    code = ctypes.CDLL(None).cudaMemsetAsync(ctypes.c_void_p(address), 0, ctypes.c_size_t(mib * MIB),
                                             ctypes.c_void_p(stream.cuda_stream))
    expect(code == 0, f"cudaMemsetAsync failed with {code}")


def custom_op(schema: str, function):
    """torch.ops.weir_jobs.NAME, whose body is `function`; NAME is the schema's."""
    library = torch.library.Library("weir_jobs", "FRAGMENT")
    library.define(schema)
    name = schema.split("(")[0]
    library.impl(name, function, "CUDA")
    custom_op.libraries.append(library)  # an op lives as long as its library
    return getattr(torch.ops.weir_jobs, name)


custom_op.libraries = []


class events_off:
    """No op of this thread has an event: torch calls no observer."""

    def __enter__(self):
        torch._C._autograd._enable_record_function(False)

    def __exit__(self, *_):
        torch._C._autograd._enable_record_function(True)
