"""What an out-of-memory error of a real job says, and that the cap that it names is the smallest one.

Usage: oom_test.py WEIR, run by the Python of a job.
"""
import re
import sys
import unittest

from jobs import MIB, finish, start

# As training frameworks look for it.
FRAMEWORKS = [re.compile(r"^CUDA out of memory\. Tried to allocate \d+\.\d+ [KMG]iB"), re.compile(r"CUDA out of memory\.")]
TORCHS_OWN = re.compile(
    r"^CUDA out of memory\. Tried to allocate [\d.]+ \wiB\. GPU 0 has a total capacity of [\d.]+ \wiB of which [\d.]+ \wiB is "
    r"free\. .*(Process \d+|this process) has [\d.]+ \w+ memory in use\. .*Of the allocated memory [\d.]+ \w+ is allocated by PyTorch, and "
    r"[\d.]+ \w+ is reserved by PyTorch but unallocated\.")


def smallest_cap(text):
    return int(re.search(r"^  smallest cap .*\(WEIR_VRAM=(\d+)MiB\)$", text, re.M)[1])


def row(text, name):
    """MiB of a row of the table; None if there is none."""
    found = re.search(rf"^ +([\d.]+) MiB  {re.escape(name)}", text, re.M)
    return found and float(found[1])


class Smallest(unittest.TestCase):
    """One job; each scenario has a device with the smallest cap, and one with a frame less."""
    LEAST = {"addition": 3 * 12, "in_place": 2 * 12, "escaped": 4 * 12, "floor": 12}

    @classmethod
    def setUpClass(cls):
        scenarios, caps = [], []
        for scenario, least in cls.LEAST.items():
            scenarios += [scenario] * 2
            caps += [least - 2, least]
        vram = ",".join(f"{index}:{cap}MiB" for index, cap in enumerate(caps))
        errors, cls.log = finish(start("oom_job.py", *scenarios, gpu=f"h200x{len(caps)}", flags=("--vram", vram)))
        cls.below, cls.there, cls.caps = dict(zip(cls.LEAST, errors[::2])), dict(zip(cls.LEAST, errors[1::2])), caps

    def test_CapThatIsNamed_Passes_AndOneFrameLessNamesIt(self):  # C05
        for scenario, least in self.LEAST.items():
            self.assertIsNone(self.there[scenario], scenario)
            self.assertEqual(smallest_cap(self.below[scenario]), least, self.below[scenario])
            self.assertIn(f"try: raise WEIR_VRAM to {least}MiB", self.below[scenario])

    def test_Addition_TableOfWhatHoldsVram(self):
        text = self.below["addition"]
        self.assertRegex(text, r"Weir: aten::add\b.* needs 36\.00 MiB in VRAM at once")
        self.assertEqual(row(text, "in use by this op"), 24)
        self.assertEqual(len(re.findall(r"^ +12\.00 MiB  at 0x[0-9a-f]+, resident, in use by this op$", text, re.M)), 2)
        self.assertEqual(len(re.findall(r"^ +8\.00 MiB  at 0x[0-9a-f]+, in RAM$", text, re.M)), 3, "five in all")

    def test_InPlace_NeedsItsArguments(self):
        self.assertRegex(self.below["in_place"], r"Weir: aten::add_ needs 24\.00 MiB for its arguments in VRAM at once")

    def test_EscapedPointer_IsNamed(self):
        self.assertEqual(row(self.below["escaped"], "pinned for good (its address was taken"), 12)

    def test_CapBelowWhatCannotLeave_SaysSo(self):
        self.assertEqual(row(self.below["floor"], "floor of small tensors"), 10)

    def test_CapsPerDevice_EachHolds(self):
        for index, cap in enumerate(self.caps):
            found = re.search(rf"exit device={index} cap=(\d+) peak_resident=(\d+) ", self.log)
            self.assertEqual(int(found[1]), cap * MIB)
            self.assertLessEqual(int(found[2]), cap * MIB)
        self.assertEqual(set(re.findall(r"out_of_memory=(\d+)", self.log)), {str(len(self.LEAST))})


class Words(unittest.TestCase):
    def test_FullRam_NamesTheBudgetThatIsEnough(self):  # C20
        def run(ram):
            return finish(start("oom_job.py", "full_ram", flags=("--vram", "32MiB", "--ram", f"{ram}MiB")))[0][0]
        least = 7 * 8 - 32
        text = run(least - 2)
        self.assertIn(f"RAM tier: 16.00 MiB of {least - 2}.00 MiB used (WEIR_RAM)", text)
        self.assertIn(f"try: raise WEIR_RAM to {least}MiB", text)
        self.assertIsNone(run(least))

    def test_FirstLine_IsTorchsOwn(self):  # C20
        jobs = [start("oom_job.py", "native", WEIR_DISABLE="1"), start("oom_job.py", "addition", flags=("--vram", "32MiB"))]
        for (text,), _ in map(finish, jobs):
            for pattern in [TORCHS_OWN, *FRAMEWORKS]:
                self.assertRegex(text, pattern)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
