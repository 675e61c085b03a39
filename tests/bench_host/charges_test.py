"""What Weir does on the host is on the virtual clock. The constants are such that the digits of the time that is charged say how
often each was. TEST_WEIR names the command."""
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Microseconds. A thousand of one are one of the next; of the first, one is a nanosecond.
CHARGES = {"weir_op_us": 1e-3, "weir_touch_us": 1, "weir_malloc_us": 10**3, "weir_free_us": 10**6, "weir_page_in_us": 10**9,
           "weir_event_us": 10**12}
FREE = ("torch_malloc_us torch_free_us weir_candidate_us kernel_us copy_us launch_us copy_submit_us event_us call_us "
        "start_us op_us nested_op_us malloc_us free_us pin_us_per_mib vmm_create_us vmm_map_us vmm_access_us vmm_unmap_us "
        "vmm_release_us vmm_reserve_us").split()


class Usage(ctypes.Structure):  # WeirEmulatedUsage
    _fields_ = [(name, ctypes.c_int64) for name in (
        "done sms copy_in copy_out mapper nvme idle_for_host idle_for_others host_blocked host_weir steps step").split()]


def look() -> tuple:
    """Nanoseconds of this process: all that was charged, and the thread's clock."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.weir_emulated_now_ns.restype = ctypes.c_int64
    usage = Usage()
    driver.weir_emulated_usage(ctypes.byref(usage))
    return usage.host_weir, driver.weir_emulated_now_ns()


def counts_of(nanoseconds: int) -> dict:
    """How often each of CHARGES is in it."""
    counts, left = {}, nanoseconds
    for name in CHARGES:
        left, counts[name[5:-3]] = divmod(left, 1000)
    return counts


def job():
    """Prints what was charged for each case, and in all."""
    import torch
    large = [torch.zeros(1 << 20, device="cuda") for _ in range(8)]
    a, b, c, out = (torch.zeros(16, device="cuda") for _ in range(4))
    cases = {
        "nothing": lambda: None,
        "one tensor": lambda: a.add_(1),
        "three tensors": lambda: torch.add(a, b, out=out),
        "a result": lambda: torch.add(a, b),
        "a block": lambda: torch.empty(1 << 18, device="cuda"),
        "an operator inside another": lambda: torch.multiply(a, b, out=out),
        "tensors in turn": lambda: [tensor.add_(1) for tensor in large],
    }
    charged = {}
    for name, work in cases.items():
        work()
        for times in (5, 20):
            before = look()
            for _ in range(times):
                work()
            nanoseconds, passed = (after - earlier for after, earlier in zip(look(), before))
            charged[f"{name} x{times}"] = counts_of(nanoseconds) | {"unaccounted": passed - nanoseconds}
    print(json.dumps({"charged": charged, "in_all": counts_of(look()[0])}))


class ChargesTest(unittest.TestCase):
    def run_job(self, cap: str) -> tuple:
        """(what the job printed, the figures of Weir's exit line)."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder, "charges.profile")
            lines = {name: 0 for name in FREE} | CHARGES
            profile.write_text("base h200\n" + "".join(f"{name} {value}\n" for name, value in lines.items()))
            done = subprocess.run([os.environ["TEST_WEIR"], "run", "--gpu", f"emulated:{profile}", "--beside-real-gpu", "--kernels",
                                   "none", "--vram", cap, "--", sys.executable, __file__, "job"],
                                  env=kept | {"WEIR_LOG": "info"}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        line = re.search(r"^weir: exit (.*)$", done.stderr, re.M).group(1)
        return json.loads(done.stdout), dict(pair.split("=", 1) for pair in line.split())

    def test_charges_grow_with_the_work_by_the_constants(self):
        charged = self.run_job("1GiB")[0]["charged"]
        each = {"nothing": {}, "one tensor": {"op": 1, "touch": 1}, "three tensors": {"op": 1, "touch": 3},
                "a result": {"op": 1, "touch": 3, "malloc": 1, "free": 1}, "a block": {"op": 1, "malloc": 1, "free": 1},
                "an operator inside another": {"op": 1, "touch": 3, "event": 1},
                "tensors in turn": {"op": 8, "touch": 8}}
        kinds = [name[5:-3] for name in CHARGES]
        for name, counts in each.items():
            for times in (5, 20):
                wanted = {kind: times * counts.get(kind, 0) for kind in kinds} | {"unaccounted": 0}
                self.assertEqual(charged[f"{name} x{times}"], wanted, name)

    def test_each_move_is_charged(self):
        printed, figures = self.run_job("24MiB")
        moves = int(figures["evictions"]) + int(figures["fetches"])
        self.assertEqual(printed["in_all"]["page_in"], moves)
        self.assertGreater(moves, 2 * 8 * 20)


if __name__ == "__main__":
    if sys.argv[1:] == ["job"]:
        job()
        sys.exit()
    unittest.main()
