"""Kernels `none`: a model that is built on the CPU and moved to the card costs no RAM where it is large.

Usage: skipped_init_test.py PRELOAD_LIBRARY
"""
import os
import subprocess
import sys
import unittest

PRELOAD = sys.argv[1]
MIB = 1 << 20

# What a program sees of memory, in MiB: the most that it held in RAM; what the card holds.
HEAD = """
import torch
from torch import nn
def held():
    with open("/proc/self/status") as status:
        return int([line.split()[1] for line in status if line.startswith("VmHWM")][0]) // 1024
"""


def run(program, kernels="none"):
    """(what it printed, by lines; stderr)"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    done = subprocess.run([sys.executable, "-c", HEAD + program], capture_output=True, text=True,
                          env=kept | {"LD_PRELOAD": PRELOAD, "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1",
                                      "WEIR_KERNELS": kernels, "WEIR_EMULATED_TIMING": "1"})
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout.splitlines(), done.stderr


# 4 GiB of weights, as scripts make them.
MODEL = """
before = held()
layers = nn.ModuleList(nn.Linear(8192, 8192, bias=False) for _ in range(12))
table = nn.Embedding(32768, 8192)
nn.init.normal_(table.weight, std=0.02)
nn.init.xavier_uniform_(layers[0].weight)
nn.init.kaiming_normal_(layers[1].weight)
nn.init.trunc_normal_(layers[2].weight, std=0.02)
nn.init.zeros_(layers[3].weight)
half = layers.bfloat16()
model = nn.ModuleList([half, table])
model.cuda()
print(torch.cuda.memory_allocated() >> 20, held() - before)
"""


class SkippedInitTest(unittest.TestCase):
    def test_large_model_is_built_and_moved_in_little_ram(self):
        printed, said = run(MODEL)
        on_card, grown = map(int, printed[0].split())
        self.assertEqual(on_card, 12 * 128 + 1024)
        # trunc_normal_ compares its numbers, which makes masks of a byte for each.
        self.assertLess(grown, 600)
        self.assertEqual(said.count("are not filled with random numbers"), 1, said)
        self.assertIn("aten::uniform_ of 256 MiB", said)

    def test_what_was_skipped_is_zeros_and_is_not_known_on_the_card(self):
        printed, said = run("""
weights = torch.empty(5000, 4096).normal_()
print(weights[7, :3].tolist(), weights.mul_(2).add_(1)[9, 9].item())
row = weights[3].cuda()
print(row[0].item())
""")
        self.assertEqual(printed, ["[0.0, 0.0, 0.0] 0.0", "0.0"])
        self.assertRegex(said, r"values: exact, unless a floating-point value .*: 1 place")

    def test_what_a_program_writes_is_there(self):
        printed, _ = run("""
weights = torch.empty(5000, 4096).normal_()
weights[1] = 3
print(weights.mul_(2)[1, 0].item(), weights[1, :4].cuda().tolist())
zeros = torch.empty(5000, 4096).normal_().zero_()
print(zeros.add_(1).sum().item() == zeros.numel(), torch.full((5000, 4096), 2.0).mul_(2)[4, 4].item())
copy = torch.empty(5000, 4096).normal_()
copy.copy_(zeros)
print(copy[5, 5].item(), torch.zeros(5000, 4096).add_(5)[6, 6].item())
""")
        self.assertEqual(printed, ["6.0 [6.0, 6.0, 6.0, 6.0]", "True 4.0", "1.0 5.0"])

    def test_memory_of_others_is_filled(self):
        """A NumPy array, integers, a range without 0, a small tensor."""
        printed, said = run("""
import mmap
size = 80 << 20
mapped = torch.frombuffer(mmap.mmap(-1, size), dtype=torch.float32).normal_()
print(mapped.std().item() > 0.9, torch.empty(size // 8, dtype=torch.long).random_(1, 9).min().item(),
      torch.empty(size // 4).uniform_(1, 2).min().item() >= 1, torch.randn(1 << 20).std().item() > 0.9)
""")
        self.assertEqual(printed, ["True 1 True True"])
        self.assertNotIn("are not filled", said)

    def test_kernels_cpu_skip_nothing(self):
        printed, said = run("print(torch.empty(5000, 4096).normal_().std().item() > 0.9)", kernels="cpu")
        self.assertEqual(printed, ["True"])
        self.assertNotIn("are not filled", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
