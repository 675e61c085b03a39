"""R3 on torch 2.11: what anything but an aten op was given stays, and beside compiled or foreign code nothing leaves."""
import os
import subprocess
import sys
import unittest

import torch

from harness import PluginTest

# Twice the cap in tensors that aten ops alone have used, after `{first}`.
JOB = """
import ctypes, torch
torch.ones(1, device="cuda")
{first}
tensors = [torch.ones(1 << 20, device="cuda").add_(1) for _ in range(20)]
"""
OPERATOR = """
library = torch.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
torch.ops.mine.twice(torch.ones(8, device="cuda"))
"""


class ForeignCode(PluginTest):
    def job(self, first=""):
        """What `weir run` of a job under half of what it needs says, on the real core; and its exit code."""
        ours = ("LD_PRELOAD", "LD_LIBRARY_PATH")
        clean = {name: text for name, text in os.environ.items() if name not in ours and not name.startswith("WEIR_")}
        done = subprocess.run([os.environ["WEIR_TEST_WEIR"], "run", "--gpu", "emulated", "--beside-real-gpu",
                               "--kernels", "none", "--vram", "40MiB", "--", sys.executable, "-c", JOB.format(first=first)], env={**clean, "WEIR_LOG": "info"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def assert_nothing_leaves(self, first, what):
        code, text = self.job(first)
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"torch\.OutOfMemoryError: CUDA out of memory.*\n.*nothing leaves in a job with compiled or "
                               rf"foreign code; seen: {what}")
        self.assertIn(" evictions=0 ", text)

    def test_AtenAlone_Leaves(self):
        code, text = self.job()
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r" evictions=[1-9]")
        self.assertNotIn("nothing leaves", text)

    def test_TorchsOwnOperators_Leaves(self):
        code, text = self.job("with torch.profiler.record_function('mine'): torch.ops.prims.neg(torch.ones(8, device='cuda'))")
        self.assertEqual(code, 0, text)

    def test_OperatorOfAnotherNamespace_NothingLeaves(self):
        self.assert_nothing_leaves(OPERATOR, "the operator mine::twice")

    def test_CompilerImported_NothingLeaves(self):
        self.assert_nothing_leaves("import torch._inductor.compile_fx", r"torch\._inductor\.compile_fx")

    def test_ExtensionLoaded_NothingLeaves(self):
        library = os.environ["WEIR_TEST_FOREIGN"]
        self.assert_nothing_leaves(f"ctypes.CDLL({library!r})", f"{os.path.basename(library)}, which links libc10.so")

    def test_ArgumentOfAnotherOperator_StaysForGood(self):
        x, y = self.used(64), self.used(64)
        torch.ops.prims.neg(x)
        torch.neg(y)
        self.assertTrue(self.core.escaped(x))
        self.assertFalse(self.core.escaped(y))

    def test_ArgumentOfAtenOpThatKeepsIt_StaysForGood(self):
        x = self.used(64)
        clone = torch._lazy_clone(x)
        self.assertTrue(self.core.escaped(x))
        del clone


if __name__ == "__main__":
    unittest.main()
