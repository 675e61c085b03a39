"""`weir dryrun` of small torch jobs: the peaks are those that torch's allocator counts in the same run, and a card that is too
small is said to be."""
import unittest

from dry_job import DryJobTest

MIB = 1 << 20
GIB = 1 << 30

# 2 x 4 MiB of weights; prints what torch says, the most before and after a reset.
TRAIN = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.ReLU(), nn.Linear(1024, 1024, bias=False)).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)
peaks = lambda: (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
def steps(count, batch):
    for _ in range(count):
        model(torch.randn(batch, 1024).cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
steps(1, 20000)
large = peaks()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
steps(3, 100)
print(*map(max, large, peaks()))
"""

# Leaves 3 and 6 GiB in the allocator's cache, in neither of which the blocks of 7 GiB find room.
LARGE = """
import torch
GIB = 1 << 30
for size in (3, 6):
    torch.empty(size * GIB, dtype=torch.uint8, device="cuda")
blocks = [torch.empty(7 * GIB, dtype=torch.uint8, device="cuda") for _ in range(BLOCKS)]
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""


class TrainingTest(DryJobTest):
    def test_peaks_are_those_of_torch_also_when_a_job_resets_them(self):
        report, printed = self.dry_run(TRAIN, "--gpu", "a100-80g")
        self.check_peaks(report, *map(int, printed.split()))
        self.assertEqual((report["fits"], report["values"], report["cap"]), (True, "exact", None))
        at_peak = report["memory"]["at_peak"]
        self.assertEqual(at_peak["parameter"], 2 * 4 * MIB)
        self.assertGreaterEqual(at_peak["activation"], 2 * 20000 * 1024 * 4)  # what the first and the second layer got
        self.assertEqual(report["step"]["count"], 3)  # the first step is not counted
        self.assertGreater(report["step"]["median_ns"], 0)

    def test_same_run_has_the_same_figures(self):
        first, again = (self.dry_run(TRAIN, "--gpu", "h100")[0] for _ in range(2))
        first.pop("process"), again.pop("process")
        self.assertEqual(first, again)

    def test_cap_puts_weir_to_work(self):
        free, _ = self.dry_run(TRAIN)
        report, _ = self.dry_run(TRAIN, "--vram", "300MiB")
        self.assertGreater(free["memory"]["peak_reserved_bytes"], 300 * MIB)
        self.assertLessEqual(report["memory"]["peak_reserved_bytes"], 300 * MIB)
        self.assertEqual((report["fits"], report["cap"]), (True, "300MiB"))
        self.assertGreater(report["total_ns"], free["total_ns"])  # tensors moved

    def test_cap_that_is_too_small(self):
        report, _ = self.dry_run(TRAIN, "--vram", "20MiB", code=3)
        self.assertEqual((report["fits"], report["exit_code"]), (False, 1))


class FitTest(DryJobTest):
    def test_job_that_does_not_fit_gets_to_its_peak(self):
        report, printed = self.dry_run(LARGE.replace("BLOCKS", "2"), "--gpu", "rtx3060-12g", code=3)
        self.check_peaks(report, *map(int, printed.split()))
        # What was cached was given back before anything was lent, as on the card: 14 GiB, not 3 + 6 + 14.
        self.assertEqual(report["memory"]["peak_reserved_bytes"], 14 * GIB)
        self.assertEqual((report["fits"], report["exit_code"]), (False, 0))
        self.assertEqual(report["needed_bytes"], 14 * GIB + report["memory"]["context_bytes"])

    def test_job_that_fits_when_the_cache_is_given_back(self):
        report, printed = self.dry_run(LARGE.replace("BLOCKS", "1"), "--gpu", "rtx3060-12g")
        self.check_peaks(report, *map(int, printed.split()))
        self.assertEqual((report["fits"], report["memory"]["peak_reserved_bytes"]), (True, 9 * GIB))

    def test_no_card_has_a_size_that_is_asked_for_to_fail(self):
        report, printed = self.dry_run("""
import torch
torch.empty(1 << 20, device="cuda")
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("refused")
""", "--gpu", "rtx3060-12g")
        self.assertEqual((printed, report["fits"]), ("refused\n", True))


class ValuesTest(DryJobTest):
    def test_values_that_decide_are_named(self):
        report, _ = self.dry_run("""import torch
x = torch.ones(1 << 22, device="cuda")
print(x.nonzero().shape)
""")
        self.assertEqual((report["values"], report["value_reads"]), ("estimate", ["aten::nonzero at train.py:3"]))


if __name__ == "__main__":
    unittest.main()
