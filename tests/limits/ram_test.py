"""Budgets of RAM: what a process, its devices and the ranks of a machine take together. The host is an emulated one with 8 GiB.

Usage: ram_test.py WEIR, run by the Python of a job.
"""
import pathlib
import re
import sys
import tempfile
import unittest

from jobs import MIB, finish, start

GIB = 1 << 10  # in MiB, as the job prints
HOST, CAP = 8 * GIB, 1 * GIB
ALONE = HOST // 2  # what `auto` plans for one process


class RamTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.profile = str(pathlib.Path(folder.name, "host.profile"))
        pathlib.Path(self.profile).write_text("base h200\nhost_ram_gib 8  # made up\n")

    def run_job(self, *arguments, devices="", ram="auto", **environment):
        """What the job printed last, and MiB of RAM used at most by each device of each process."""
        process = start("ram_job.py", *arguments, gpu=self.profile + devices, **environment,
                        flags=("--kernels", "none", "--vram", f"{CAP}MiB", "--ram", ram))
        held, log = finish(process)
        return held, [int(peak) // MIB for peak in re.findall(r" peak_ram=(\d+)", log)], log

    def test_TwoRanks_Auto_NeverMoreThanOne(self):
        _, (alone,), log = self.run_job("fill")
        self.assertEqual(alone, ALONE)
        self.assertIn("WEIR_RAM=auto: half of 8.00 GiB available (the profile), at present 4.00 GiB for this process", log)
        held, used, _ = self.run_job("two")
        self.assertEqual(held, [CAP + ALONE // 2] * 2)
        self.assertLessEqual(sum(used), alone)

    def test_LocalRanks_EachPlansItsPart(self):
        _, used, _ = self.run_job("fill", LOCAL_WORLD_SIZE="4")
        self.assertEqual(used, [ALONE // 4])

    def test_Node_IsSharedByTheRanks(self):
        held, used, _ = self.run_job("two", ram=f"{3 * GIB}MiB/node", LOCAL_WORLD_SIZE="2")
        self.assertEqual(held, [CAP + 3 * GIB, CAP])  # the first took all
        self.assertEqual(sum(used), 3 * GIB)

    def test_SizeIsOfTheProcess_ForAllItsDevices(self):
        _, used, _ = self.run_job("fill", "2", devices="x2", ram="2GiB")
        self.assertEqual(len(used), 2)
        self.assertEqual(sum(used), 2 * GIB)

    def test_CapAboveTheCard_IsTheCards(self):
        process = start("ram_job.py", "fill", gpu="rtx3060-12g", flags=("--kernels", "none", "--vram", "0:200GiB", "--ram", "1GiB"))
        (held), log = finish(process)
        found = re.search(r"device 0: WEIR_VRAM=200\.00 GiB is more than the card has; the cap is ([\d.]+) GiB", log)
        cap = int(re.search(r" cap=(\d+)", log)[1]) // MIB
        self.assertAlmostEqual(float(found[1]), cap / GIB, delta=0.01)
        self.assertTrue(11 * GIB < cap <= 12 * GIB, cap)
        self.assertLessEqual(held, cap + GIB)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
