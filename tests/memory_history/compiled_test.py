"""The compiled region that an allocation belongs to, and a history that is still on when the process ends."""
import builtins
import unittest

import torch

from memory import MemoryTest


def allocating(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(1000, device="cuda") + x


class Late:
    """Freed while the interpreter shuts down, when its stack can still be asked for, or no more."""

    def __init__(self):
        self.tensors = [torch.ones(64, device="cuda") for _ in range(4)]

    def __del__(self):
        self.tensors.clear()


class CompiledTest(MemoryTest):
    def test_Region_Compiled_NamedInItsEntries(self):
        compiled = torch.compile(allocating, backend="eager")
        x = torch.ones(1000, device="cuda")
        compiled(x)
        self.record(compile_context=True)
        compiled(x)
        y = torch.empty(1000, device="cuda")
        contexts = [e["compile_context"] for e in self.trace() if e["action"] == "alloc"]
        self.assertEqual(contexts, ["Torch-Compiled Region: 0/0"] * 2 + ["N/A"])
        del y

    @classmethod
    def tearDownClass(cls):
        torch.cuda.memory._record_memory_history()
        builtins.late = Late()
        builtins.kept = torch.ones(64, device="cuda")


if __name__ == "__main__":
    unittest.main()
