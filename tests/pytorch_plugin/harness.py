"""What the plugin's tests share: the fake core (fake_core.cc) by ctypes, and a CUDA device that is emulated.

The fake core moves no bytes; an evicted block is one whose storage throws. With `core.always_evict()` everything
that may leave does so at the end of every op, so an access that the plugin did not announce raises RuntimeError.
"""
import contextlib
import ctypes
import unittest

import torch

DEVICE = torch.device("cuda")


class Core:
    def __init__(self):
        torch.zeros(1, device=DEVICE)  # starts CUDA, and Weir with it
        self.lib = ctypes.CDLL("libweir_core.so")
        self.lib.fake_chunk_bytes.argtypes = [ctypes.c_uint64]
        for name in ("fake_ops", "fake_touched", "fake_chunks", "fake_blocks"):
            getattr(self.lib, name).restype = ctypes.c_uint64

    def reset(self):
        self.lib.fake_always_evict(0)
        self.lib.fake_fail_touches(0)
        self.lib.fake_chunk_bytes(2**64 - 1)
        self.log()

    def log(self) -> list:
        """Ops opened since the last call, nested ones indented by two spaces a level; `chunk` per piece."""
        text = ctypes.create_string_buffer(1 << 20)
        self.lib.fake_take_log(text, len(text))
        return text.value.decode().splitlines()

    def evict(self, *tensors):
        """Evicts all blocks that were an op's input; checks that it reached those of `tensors`."""
        self.lib.fake_evict_all()
        for tensor in tensors:
            if self.resident(tensor):
                raise AssertionError("the test's tensor could not be evicted")

    # By storage, which asks for no pointer. Only of tensors that have been an op's argument.

    def resident(self, tensor) -> bool:
        return bool(self.lib.fake_is_resident(ctypes.c_void_p(tensor.untyped_storage()._cdata)))

    def escaped(self, tensor) -> bool:
        return bool(self.lib.fake_is_escaped(ctypes.c_void_p(tensor.untyped_storage()._cdata)))

    def written(self, tensor) -> bool:
        answer = self.lib.fake_is_written(ctypes.c_void_p(tensor.untyped_storage()._cdata))
        if answer < 0:
            raise AssertionError("the tensor has been no op's argument")
        return bool(answer)

    def __getattr__(self, name):
        return getattr(self.lib, "fake_" + name)


class PluginTest(unittest.TestCase):
    """One core per process; every test starts with nothing evicted on purpose."""
    core = None

    @classmethod
    def setUpClass(cls):
        if PluginTest.core is None:
            PluginTest.core = Core()

    def setUp(self):
        self.core.reset()

    def tearDown(self):
        self.core.reset()

    def used(self, *shape, **options):
        """A tensor that has been an op's input, so that it may leave."""
        tensor = torch.ones(*shape, device=DEVICE, **options)
        tensor.add_(0)
        return tensor

    @contextlib.contextmanager
    def chunks_of(self, size: int):
        self.core.chunk_bytes(size)
        try:
            yield
        finally:
            self.core.chunk_bytes(2**64 - 1)
