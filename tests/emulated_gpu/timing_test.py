"""The virtual clock under torch: timing_test.py PRELOAD_LIBRARY. Equal runs have equal times, to the nanosecond, and what
operators take is what their sizes and the profile say."""
import pathlib
import re
import sys
import tempfile
import unittest

from forked_jobs import ForkedJobs

PRELOAD = sys.argv[1]

# Two times: the last step by torch's events, and the exit's summary.
TRAINING = """
import torch
import torch.nn.functional as F
from models import Gpt
torch.manual_seed(1)
model = Gpt().to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
ids = torch.randint(0, 128, (4, 32)).to("cuda")
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
for _ in range(4):
    start.record()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids).view(-1, 128), ids.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    end.record()
end.synchronize()
print(repr(start.elapsed_time(end)))
"""

# The host takes no time, so that the time between two events is that of the kernels. `compute`: memory is fast and 1e9
# operations take a second. `memory`: the other way around, 1e9 bytes take a second.
FREE = "".join(f"{key} 0\n" for key in (
    "kernel_us copy_us launch_us copy_submit_us event_us call_us start_us op_us nested_op_us malloc_us free_us pin_us_per_mib "
    "vmm_create_us vmm_map_us vmm_access_us vmm_unmap_us vmm_release_us vmm_reserve_us").split())
PEAKS = ("fp64_tflops", "fp32_tflops", "tf32_tflops", "bf16_tflops", "fp16_tflops", "fp8_tflops", "int8_tops")
COMPUTE = "base h200\n" + FREE + "memory_gbps 1e9\n" + "".join(f"{key} {0.001 * (i + 1)}\n" for i, key in enumerate(PEAKS))
MEMORY = "base h200\n" + FREE + "memory_gbps 1\n" + "".join(f"{key} 1e9\n" for key in PEAKS)

MEASURE = """
import torch
import torch.nn.functional as F
def took(function, *arguments):
    "Nanoseconds, the second time: the first allocates."
    for _ in range(2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function(*arguments)
        end.record()
        end.synchronize()
    return round(start.elapsed_time(end) * 1e6)
def new(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype, device="cuda")
bf16, f64 = torch.bfloat16, torch.float64
"""


JOBS = ForkedJobs(PRELOAD)
unittest.addModuleCleanup(JOBS.close)


def run(program: str, kernels: str, gpu: str = "emulated:h200", jobs: ForkedJobs = JOBS, **more) -> tuple:
    """(what it printed, the lines of the summary)."""
    environment = {"WEIR_GPU": gpu, "WEIR_KERNELS": kernels, "WEIR_EMULATED_TIMING": "1", **more}
    printed, errors = jobs.run(program, environment)
    return printed.splitlines(), re.findall(r"timing: (.*)", errors)


class RunsTest(unittest.TestCase):
    def test_equal_runs_take_equal_times(self):
        steps = {}
        others = ForkedJobs(PRELOAD)  # whose addresses are others
        self.addCleanup(others.close)
        for kernels in ("none", "cpu"):
            first = run(TRAINING, kernels)
            self.assertRegex(first[1][0], r"^step \d+\.\d+ ms, the median of 3")
            self.assertEqual(len(first[1]), 3)
            for more in ({}, {"WEIR_EMULATED_SEED": "5"}, {"WEIR_EMULATED_STREAMS": "eager"}):
                self.assertEqual(run(TRAINING, kernels, jobs=others, **more), first, (kernels, more))
            steps[kernels] = float(first[1][0].split()[1])
        self.assertAlmostEqual(steps["cpu"] / steps["none"], 1, delta=0.1)  # they compose a few operators differently

    def test_steps_that_the_program_marks(self):
        _, lines = run("""
import torch
x = torch.ones(1 << 20, device="cuda")
for _ in range(6):
    with torch.profiler.record_function("step"):
        y = x + 1
""", "none")
        self.assertRegex(lines[0], r"^step \d+\.\d+ ms, the median of 5 ")

    def test_job_without_steps(self):
        _, lines = run("import torch; torch.ones(1000, device='cuda').sum().item()", "none")
        self.assertRegex(lines[0], r"^\d+\.\d+ ms in all; no steps were seen$")
        self.assertRegex(lines[1], r"^busy SMs \d")


class OperatorsTest(unittest.TestCase):
    def times_with(self, kernels: str, profile: str, *lines: str) -> list:
        """What each line prints."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "profile")
            path.write_text(profile)
            program = MEASURE + "\n".join(f"print({line})" for line in lines)
            return list(map(int, run(program, kernels, f"emulated:{path}")[0]))

    def times(self, profile: str, *lines: str) -> list:
        """The same with both kinds of kernels."""
        without, on_cpu = self.times_with("none", profile, *lines), self.times_with("cpu", profile, *lines)
        self.assertEqual(without, on_cpu)
        return without

    def test_products_take_their_operations_at_the_peak_of_their_type(self):
        self.assertEqual(
            self.times(COMPUTE, "took(torch.mm, new(64, 32, dtype=f64), new(32, 16, dtype=f64))",
                       "took(torch.mm, new(64, 32), new(32, 16))", "took(torch.bmm, new(3, 64, 32), new(3, 32, 16))",
                       "took(torch.addmm, new(16), new(64, 32), new(32, 16))", "took(F.linear, new(8, 64, 32), new(16, 32), new(16))",
                       "took(torch.mm, new(64, 32, dtype=bf16), new(32, 16, dtype=bf16))",
                       "setattr(torch.backends.cuda.matmul, 'allow_tf32', True) or took(torch.mm, new(64, 32), new(32, 48))"),
            [2 * 64 * 32 * 16, 2 * 64 * 32 * 16 // 2, 3 * 2 * 64 * 32 * 16 // 2, 2 * 64 * 32 * 16 // 2, 2 * 512 * 32 * 16 // 2,
             2 * 64 * 32 * 16 // 4, 2 * 64 * 32 * 48 // 3])

    def test_attention_takes_two_products_and_a_causal_one_half(self):
        heads = "new(2, 4, 128, 64, dtype=bf16)"
        self.assertEqual(self.times(COMPUTE, f"took(F.scaled_dot_product_attention, {heads}, {heads}, {heads})",
                                    f"took(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), {heads})"),
                         [2 * 2 * 8 * 128 * 128 * 64 // 4, 2 * 8 * 128 * 128 * 64 // 4])

    def test_convolution_takes_its_operations(self):
        """As cuDNN: in TF32 unless that is switched off."""
        lines = ("took(F.conv2d, new(2, 3, 16, 16), new(8, 3, 3, 3))",
                 "took(F.conv2d, new(2, 3, 16, 16), new(8, 3, 3, 3), None, 2, 1)",
                 "took(F.conv_transpose2d, new(2, 3, 16, 16), new(3, 8, 3, 3))")
        self.assertEqual(self.times_with("cpu", COMPUTE, *lines),
                         [2 * 2 * 8 * 14 * 14 * 27 // 3, 2 * 2 * 8 * 8 * 8 * 27 // 3, 2 * 2 * 3 * 16 * 16 * 8 * 9 // 3])

    def test_other_operators_take_their_bytes(self):
        wanted = {
            "took(torch.add, new(1000), new(1000))": 3 * 4000,
            "took(torch.add, new(10, 100), new(100))": 2 * 4000 + 400,  # what is broadcast is read once
            "took(new(1000).add_, new(1000))": 3 * 4000,
            "took(new(1000).fill_, 2.0)": 4000,
            "took(torch.sum, new(1000))": 4000 + 4,
            "took(torch.cat, [new(1000), new(500)])": 2 * 6000,
            "took(lambda x: x.to(bf16), new(1000))": 4000 + 2000,
            "took(lambda x: x.t().contiguous(), new(10, 100))": 2 * 4000,
            "took(lambda x: x.view(100, 10).t(), new(10, 100))": 0,
            "took(F.embedding, torch.zeros(10, dtype=torch.long, device='cuda'), new(5000, 16))": 80 + 2 * 640,
            "took(torch._foreach_mul_, [new(1000), new(2000)], 2.0)": 2 * 12000,
            "took(lambda: (torch.relu(new(1000)), new(1000)))": 3 * 4000 + 4000,
        }
        self.assertEqual(dict(zip(wanted, self.times(MEMORY, *wanted))), wanted)

    def test_fused_optimizer_moves_each_tensor_as_often_as_it_must(self):
        lists = "[new(1000)], [new(1000)], [new(1000)], [new(1000)], [], [new(1)]"
        call = f"took(lambda: torch._fused_adamw_({lists}, lr=0.1, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1.0, " \
               "amsgrad=False, maximize=False))"
        zeros = 4 * 4000 + 4  # the lists are made in there
        self.assertEqual(self.times_with("none", MEMORY, call), [7 * 4000 + 4 + zeros])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
