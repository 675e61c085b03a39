"""What a job is told of its memory under a cap, by each way of asking (C11, C16), and that odd questions get the answers that they
get without Weir (C119).

Usage: told_test.py WEIR, run by the Python of a job.
"""
import json
import os
import subprocess
import sys
import unittest

WEIR = sys.argv.pop(1)
CAP = 256 << 20
JOB = """
import ctypes, json, torch
torch.ones(1, device="cuda")
runtime = ctypes.CDLL(None)
def ask(name, *which):
    free, total = ctypes.c_size_t(1), ctypes.c_size_t(1)
    pointers = [ctypes.byref(value) if asked else None for value, asked in zip((free, total), which)]
    return [getattr(runtime, name)(*pointers), free.value, total.value]
both = {name: ask(name, True, True) for name in ("cudaMemGetInfo", "cuMemGetInfo_v2")}
print(json.dumps({
    "totals": {**{name: told[2] for name, told in both.items()}, "torch": torch.cuda.mem_get_info()[1],
               "accelerator": torch.accelerator.get_memory_info()[1]},
    "frees": {name: told[1] for name, told in both.items()},
    "codes": [told[0] for told in both.values()], "card": torch.cuda.get_device_properties(0).total_memory,
    "odd": [ask(name, *which) for name in both for which in ((False, True), (True, False), (False, False))]}))
"""


def told(**variables) -> dict:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")} | variables
    done = subprocess.run([WEIR, "run", "--gpu", "emulated:h200", "--beside-real-gpu", "--vram", str(CAP), "--", sys.executable, "-c",
                           JOB], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


class Told(unittest.TestCase):
    def test_EveryQuestion_IsToldTheCap_AndTheCardWhereThatIsAsked(self):
        capped, card = told(), told(WEIR_SHOW="card")
        self.assertEqual(capped["codes"], [0, 0])
        self.assertEqual(set(capped["totals"].values()), {CAP})
        for free in capped["frees"].values():
            self.assertTrue(0 < free <= CAP, free)
        self.assertEqual(capped["card"], card["card"])  # the properties of the device are the device's
        self.assertEqual(set(card["totals"].values()), {card["card"]})

    def test_QuestionsWithNull_AnswersAsWithoutWeir(self):
        self.assertEqual(told()["odd"], told(WEIR_DISABLE="1")["odd"])


if __name__ == "__main__":
    unittest.main()
