"""A cap above the peak costs at most a hundredth of a step on an H200 while the job is watched, with Weir's work on the host on the
clock, and at most half as much once it is not; two runs take the same time to the nanosecond: steps_test.py MODEL. TEST_WEIR names the command."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 2
WARM_UP = 3  # until both allocators have their memory


def gpt():
    """The step of tools/bench_host/gpt_step.py."""
    sys.path.insert(0, str(ROOT / "tools" / "bench_host"))
    import gpt_step
    return gpt_step.steps()


def resnet50():
    """The step of ResNet-50 in mixed precision, 256 images."""
    sys.path.insert(0, str(ROOT / "tools" / "published"))
    import step_jobs
    return step_jobs.resnet50(256, mixed=True)


def job(model: str):
    """Prints the milliseconds of each step."""
    import torch
    step = {"gpt": gpt, "resnet50": resnet50}[model]()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(WARM_UP + STEPS + 1)]
    for event in events[:-1]:
        torch.cuda.synchronize()
        event.record()
        next(step)
    events[-1].record()
    torch.cuda.synchronize()
    print(json.dumps([start.elapsed_time(end) for start, end in zip(events[WARM_UP:], events[WARM_UP + 1:])]))


class StepsTest(unittest.TestCase):
    def times(self, **weir) -> list:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        done = subprocess.run([os.environ["TEST_WEIR"], "run", "--gpu", "emulated:h200", "--beside-real-gpu", "--kernels", "none", "--",
                               sys.executable, __file__, "job", MODEL], env=kept | weir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_cap_above_the_peak(self):
        without, watched = self.times(WEIR_DISABLE="1"), self.times(WEIR_VRAM="100GiB", WEIR_WATCH="always")
        if MODEL == "gpt":
            self.assertEqual(self.times(WEIR_VRAM="100GiB", WEIR_WATCH="always"), watched)
        for plain, weirs in zip(without, watched):
            self.assertGreater(weirs, plain)  # its work is charged
            self.assertLessEqual(weirs / plain, 1.01)
        for plain, weirs in zip(without, self.times(WEIR_VRAM="100GiB")):
            self.assertLessEqual(weirs / plain, 1.005)


if __name__ == "__main__":
    if sys.argv[1] == "job":
        job(sys.argv[2])
        sys.exit()
    MODEL = sys.argv.pop(1)
    unittest.main()
