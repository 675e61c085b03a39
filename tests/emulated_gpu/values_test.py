"""Kernels `none`: what was computed, what was read all the same, and what the run calls its figures: values_test.py PRELOAD_LIBRARY."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PRELOAD = sys.argv[1]

# What libcuda.so.1 answers, as (verdict, [(op, place, floats, times, bytes)]).
ASK = f"""
import ctypes
class Read(ctypes.Structure):
    _fields_ = [("op", ctypes.c_char_p), ("place", ctypes.c_char_p), ("floats", ctypes.c_int), ("times", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64)]
EACH = ctypes.CFUNCTYPE(None, ctypes.POINTER(Read), ctypes.c_void_p)
def ask():
    found = []
    def each(read, context):
        read = read.contents
        found.append((read.op.decode(), read.place.decode(), read.floats, read.times, read.bytes))
    library = ctypes.CDLL({str(pathlib.Path(PRELOAD).parent / "libcuda.so.1")!r})
    return library.weir_emulated_values(EACH(each), None), found
"""
EXACT, UNLESS_FLOATS, ESTIMATE = range(3)


def run(program: str, **more) -> tuple:
    """(what it printed, the lines about values); the program is job.py, its first line is line 1."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    environment = kept | {"LD_PRELOAD": PRELOAD, "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1", "WEIR_KERNELS": "none",
                          "WEIR_EMULATED_TIMING": "1"} | more
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "answer.py").write_text(ASK)
        path = pathlib.Path(folder, "job.py")
        path.write_text(program)
        done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)
    if done.returncode or "reports=0" not in done.stderr:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout, re.findall(r"values: (.*)", done.stderr)


class ReadsTest(unittest.TestCase):
    def test_places_are_listed_once_and_make_an_estimate(self):
        printed, lines = run("""import torch
from answer import ask
x = torch.ones(1 << 20, device="cuda")
print(ask() == (0, []))
for _ in range(3):
    loss = x.sum()
    print(loss.item())
print(ask() == (1, [("aten::_local_scalar_dense", "job.py:7", 1, 3, 12)]))
print(x.nonzero().shape)
print(x.cpu().sum())
print(ask()[0], [read[:4] for read in ask()[1]])
""")
        self.assertEqual(printed.splitlines(), ["True", "0.0", "0.0", "0.0", "True", "torch.Size([0, 1])", "tensor(0.)", str(ESTIMATE) + " " + str(
            [("aten::nonzero", "job.py:9", 0, 1), ("aten::_local_scalar_dense", "job.py:7", 1, 3), ("aten::copy_", "job.py:10", 1, 1)])])
        self.assertRegex(lines[0], r"^estimate; .*: 1 place; floating-point values at 2 places$")
        self.assertRegex(lines[1], r"^aten::nonzero at job.py:9, 1 times, \d+ bytes$")
        self.assertEqual(lines[2], "aten::_local_scalar_dense at job.py:7, 3 times, 12 bytes, floating-point")

    def test_floats_leave_a_condition(self):
        _, lines = run("import torch\nloss = torch.ones(1 << 20, device='cuda').sum()\nprint(loss.tolist())\n")
        self.assertRegex(lines[0], r"^exact, unless a floating-point value .*: 1 place$")
        self.assertRegex(lines[1], r" at job.py:3, .*floating-point$")

    def test_job_that_reads_nothing_is_exact(self):
        _, lines = run("import torch\nids = torch.arange(5).cuda()\nassert ids[3].item() == 3\n")
        self.assertEqual(lines, ["exact; the program read nothing that was not computed"])

    def test_print_of_a_tensor_decides_nothing(self):
        printed, lines = run("import torch\nx = torch.ones(1 << 20, device='cuda')\nprint(x.sum(), x)\n")
        self.assertIn("tensor(0., device='cuda:0') tensor([0.,", printed)
        self.assertEqual(lines, ["exact; the program read nothing that was not computed"])


# Each of these is a shape, a branch or a list that a card gives too; `want` is the same on the CPU.
SMALL = """
import torch
from answer import ask
ids = torch.tensor([[3, 1, 0, 0], [2, 3, 3, 0]])
hidden = torch.randn(2, 4, 512)
def results(ids, hidden):
    device = ids.device
    mask, counts = ids != 0, torch.tensor([1, 0, 2], device=device)
    position = torch.cumsum(mask, 1) * mask
    kept = torch.zeros(2, 4, dtype=torch.bool, device=device)
    kept[mask] = True
    kept[0, 0] &= False
    hidden[mask] = 0
    places = torch.full((3,), -1, device=device).scatter_(0, ids[1, :1], 5)
    return [mask.sum().item(), mask.nonzero(), hidden[mask].shape, torch.where(mask), torch.masked_select(ids, mask), torch.unique(ids),
            torch.unique(ids, return_inverse=True, return_counts=True), torch.bincount(ids.view(-1)), torch.equal(ids, ids.clone()),
            torch.repeat_interleave(torch.arange(3, device=device), counts), position, position[:, -1].tolist(), kept, places,
            ids.float().mean().item(), ids.max(1), ids.topk(2, 1), ids.sort(1), torch.argsort(ids, dim=1, stable=True), (ids > 2).any().item(),
            torch.nn.functional.one_hot(ids), torch.tril(torch.ones(9, 9, dtype=torch.bool, device=device)).sum(1), ids.t().contiguous(),
            torch.cat([ids, ids + 1]), torch.stack([ids, ids]).unbind(1), torch.eye(3, dtype=torch.long, device=device), ids.to(torch.int8),
            ids.flip(1), torch.arange(2, 9, 3, device=device), torch.linspace(0, 1, 5, device=device), torch.isin(ids, counts),
            torch.searchsorted(torch.arange(9, device=device), ids), ids.split([1, 3], 1), torch.bucketize(ids, counts.cumsum(0))]
def same(one, other):
    if torch.is_tensor(one):
        return torch.equal(one, other.cpu()) and one.dtype == other.dtype
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
want, got = results(ids, hidden), results(ids.cuda(), hidden.cuda())
print([index for index, pair in enumerate(zip(want, got)) if not same(*pair)], ask())
"""


class ComputedTest(unittest.TestCase):
    def test_small_integers_are_those_of_the_cpu(self):
        printed, lines = run(SMALL)
        self.assertEqual(printed, "[] (0, [])\n")
        self.assertEqual(lines, ["exact; the program read nothing that was not computed"])

    def test_random_integers_follow_the_seed(self):
        printed, _ = run("""import torch
def draw():
    torch.manual_seed(4)
    return [torch.randint(0, 1000, (64, 128), device="cuda"), torch.randperm(500, device="cuda"), torch.rand(8, device="cuda") < 0.5]
first, second = draw(), draw()
print(all(map(torch.equal, first, second)), torch.equal(first[1].sort()[0].cpu(), torch.arange(500)))
print(first[0].unique().numel() > 900, 0 <= first[0].min().item(), first[0].max().item() < 1000)
torch.manual_seed(5)
print(torch.equal(first[0], torch.randint(0, 1000, (64, 128), device="cuda")))
""")
        self.assertEqual(printed.split(), ["True", "True", "True", "True", "True", "False"])

    def test_what_unknown_values_lead_to_is_unknown(self):
        """Also where the bytes were known before."""
        printed, lines = run("""import torch
logits = torch.randn(64, 1024).cuda() @ torch.randn(1024, 64).cuda()
experts = torch.zeros(64, 2, dtype=torch.long, device="cuda")
print(experts.sum().item())
torch.topk(logits, 2, out=(torch.empty(64, 2, device="cuda"), experts))
print(experts.sum().item())
counts = torch.arange(4, device="cuda")
counts += (logits > 0)[0, :4]
print(counts.tolist())
""")
        self.assertEqual(printed.splitlines(), ["0", "0", "[0, 0, 0, 0]"])
        self.assertEqual([re.sub(",.*", "", line) for line in lines[1:]],
                         ["aten::_local_scalar_dense at job.py:6", "aten::copy_ at job.py:9"])

    def test_what_is_read_and_written_is_computed_once(self):
        """pow(2, x) calls pow(tensor, x) into the same memory."""
        printed, _ = run("import torch\nx = torch.arange(4., device='cuda')\ntorch.pow(2, x, out=x)\nprint(x.tolist())\n")
        self.assertEqual(printed, "[1.0, 2.0, 4.0, 8.0]\n")

    def test_library_that_nobody_models_leaves_nothing_known(self):
        """The batched factorisation is cuBLAS's own; what it writes was known before."""
        printed, lines = run("""import torch
matrices = torch.eye(4).repeat(6, 1, 1).cuda()
matrices = matrices @ matrices
errors = torch.full((6,), 7, dtype=torch.int32, device="cuda")
print(errors.tolist())
places = torch.empty(6, 4, dtype=torch.int32, device="cuda")
torch.linalg.lu_factor_ex(matrices, out=(torch.empty(6, 4, 4, device="cuda"), places, errors))
print(errors.tolist())
""")
        self.assertEqual(printed.splitlines(), [str([7] * 6), str([0] * 6)])
        self.assertRegex(lines[1], r"^aten::copy_ at job.py:8, 1 times, 24 bytes$")

    def test_what_the_cpu_cannot_compute_was_read(self):
        printed, lines = run("""import torch
x = torch.zeros(4, dtype=torch.int32, device="cuda").view(torch.complex32)
print(x.equal(x.clone()))
""")
        self.assertEqual(printed, "False\n")
        self.assertRegex(lines[1], r"^aten::equal at job.py:3, 1 times, 1 bytes$")

    def test_memory_is_that_of_the_cuda_code(self):
        """What is computed allocates what it would without."""
        program = """import torch
ids = torch.arange(4096, device="cuda")
torch.cuda.reset_peak_memory_stats()
(ids % 7).sort()
print(torch.cuda.max_memory_allocated())
"""
        self.assertEqual(run(program)[0], run(program, WEIR_EMULATED_TIMING="0", WEIR_EMULATED_CHECKS="off")[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
