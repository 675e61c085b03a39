"""Under Weir, with kernels `none`: the real host code of torch's ops is given memory that torch has freed. Weir keeps it
mapped, so only the life of the block tells (correctness R17).

Usage: freed_blocks_test.py WEIR
"""
import os
import re
import subprocess
import sys
import unittest

# Workspaces, of which torch 2.15 makes one for each product, stay away from where a block of 4 MiB was freed.
SMALL = {"CUBLAS_WORKSPACE_CONFIG": ":16:1", "CUBLASLT_WORKSPACE_SIZE": "16"}
JOB = """
import ctypes, torch
alive, other = torch.ones(1024, 1024, device="cuda"), torch.ones(1024, 1024, device="cuda")
few = torch.ones(128, device="cuda")  # all of its block; what is freed below does not begin at its end
between = torch.ones(100, device="cuda")
torch.mm(alive, alive, out=other)  # the workspace of cuBLAS is there from now on
runtime = ctypes.CDLL(None)

def freed(*shape):
    "A tensor whose block is gone. Nothing may be allocated before it is used, or the block is alive again."
    block = torch.empty(*shape, device="cuda")
    storage = torch._C._construct_storage_from_data_pointer(block.data_ptr(), block.device, block.numel() * 4)
    tensor = torch.empty(0, device="cuda").set_(storage, 0, shape)
    del block
    return tensor

def clear(address, size):
    runtime.cudaMemsetAsync(ctypes.c_void_p(address), 0, ctypes.c_size_t(size), None)

USES
torch.cuda.synchronize()
"""

FREED = [
    ("alive.add_(freed(1024, 1024))", "vectorized_elementwise_kernel"),
    ("alive.add_(freed(1024, 1024).t())", "::elementwise_kernel"),
    ("torch.sum(freed(128, 64), 1, out=few)", "reduce_kernel"),
    ("torch._foreach_add_([few, freed(128)], 1)", "multi_tensor_apply_kernel"),
    ("torch.mm(alive, freed(1024, 1024), out=other)", "cublas"),
    ("alive.copy_(freed(1024, 1024))", "a copy's source"),
    ("freed(1024, 1024).zero_()", "a memset|FillFunctor"),  # the kernel on torch 2.11
    ("clear(freed(128).data_ptr(), 512)", "a memset"),
    ("clear(few.data_ptr(), 513)", "a memset"),  # a block of 512 bytes
]
# Blocks that die right after the launches that use them, as all temporaries do; ends of blocks; empty tensors.
FINE = """
for _ in range(3):
    (alive @ alive).relu().softmax(-1).sum().backward() if alive.requires_grad else (alive @ alive).relu().sum()
    torch.nn.functional.layer_norm(alive, (1024,)).sort().values.cumsum(0)
    torch.cat([few[128:], few, few[:0]]).nonzero()
    torch._foreach_norm([few, alive[512:]])
    clear(few.data_ptr(), 512)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        used = other * 2
    other.record_stream(side)
    used.record_stream(torch.cuda.current_stream())
    other = torch.ones(1024, 1024, device="cuda")
"""


class FreedBlocksTest(unittest.TestCase):
    weir = None

    def reports(self, uses: str) -> list:
        done = subprocess.run(
            [self.weir, "run", "--gpu", "emulated", "--beside-real-gpu", "--kernels", "none", "--vram", "64MiB", "--",
             sys.executable, "-c", JOB.replace("USES", uses)], capture_output=True, text=True,
            env={**os.environ, **SMALL})
        self.assertEqual(done.returncode, 0, done.stderr)
        reports = re.findall(r"report: (.*)", done.stderr)
        self.assertRegex(done.stderr, rf"launches=[1-9].* reports={len(reports)}\n")
        return reports

    def test_each_use_of_a_freed_block_is_reported_once(self):
        reports = self.reports("\n".join(use for use, _ in FREED))
        self.assertEqual(len(reports), len(FREED), "\n".join(reports))
        for (use, by), report in zip(FREED, reports):
            self.assertIn("no live block", report)
            self.assertRegex(report, by, use)

    def test_what_was_alive_at_its_launch_is_not_reported(self):
        self.assertEqual(self.reports(FINE), [])


if __name__ == "__main__":
    FreedBlocksTest.weir = sys.argv.pop(1)
    unittest.main()
