"""`import torch` in an installation of torch-weir (entry point torch.backends): nothing where no WEIR_* variable is set, Weir
in place where one asks for it."""
import json
import os
import re
import sys
import unittest

from installation import BUILD, CAP, JOB, InstallationTestCase

MOST_MICROSECONDS = 5000


class Unasked(InstallationTestCase):
    def test_Import_NoVariable_OpensNothing(self):
        """After the package's own module, which torch imports, no audit event at all: no open, no dlopen, no import."""
        program = """
import json, sys
events, watching = [], True
def hook(event, arguments):
    if watching: events.append([event, str(arguments[:1])])
sys.addaudithook(hook)
import torch_weir
imported, events = events, []
torch_weir._autoload()
called, watching = events, False
print(json.dumps({"opened": [e[1] for e in imported if e[0] == "open"], "called": called,
                  "modules": [name for name in sys.modules if name.startswith("torch_weir")]}))
"""
        done = self.result(program, self.environment())
        self.assertEqual(done["called"], [])
        self.assertEqual(done["modules"], ["torch_weir"])
        self.assertEqual(len(done["opened"]), 1, done["opened"])
        self.assertRegex(done["opened"][0], r"torch_weir/__pycache__/__init__")

    def test_ImportTorch_NoVariable_NothingOfWeir(self):
        program = """
import json, sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event in ("open", "ctypes.dlopen") else None)
import torch
maps = open("/proc/self/maps").read()
print(json.dumps({"loaded": "torch_weir" in sys.modules, "cuda": torch.cuda.is_initialized(), "maps": "libweir_" in maps,
                  "opened": [name for name in opened if "torch_weir/" in name]}))
"""
        done = self.result(program, self.environment())
        self.assertTrue(done["loaded"], "torch did not call the entry point")
        self.assertEqual((done["cuda"], done["maps"]), (False, False))
        self.assertEqual([name for name in done["opened"] if "__init__" not in name], [])

    def test_ImportTime_NoVariable_UnderFiveMilliseconds(self):
        """The least of five, for the machine has other work: what is there besides is not ours."""
        times = []
        for _ in range(5):
            done = self.python("import torch_weir; torch_weir._autoload()", self.environment(), "-X", "importtime")
            own = re.findall(r"^import time:\s+\d+ \|\s+(\d+) \| torch_weir$", done.stderr, re.M)
            self.assertEqual(len(own), 1, done.stderr)
            times.append(int(own[0]))
        self.assertLess(min(times), MOST_MICROSECONDS, times)

    def test_Import_OnlyAnEmulatedGpuIsNamed_TorchsOwnAllocator(self):
        figures = self.result(JOB, self.emulated())
        self.assertEqual((figures["libraries"], figures["in_place"]), ([], False))


class Asked(InstallationTestCase):
    def test_Variable_Set_NothingIsLoadedBeforeCudaIsUsed(self):
        """Every process of a shell with WEIR_VRAM imports torch; most may never use CUDA. torch of any minor, for nothing is asked."""
        program = "import torch; print(torch.ones(2).sum().item(), 'libweir_' in open('/proc/self/maps').read())"
        done = self.python(program, self.environment(WEIR_VRAM="64MiB", WEIR_REQUIRED="1"))
        self.assertEqual((done.stdout, done.stderr), ("2.0 False\n", ""))

    def test_Variable_Set_JobRunsCappedWithTheSameResult(self):
        figures = self.result(JOB, self.emulated(WEIR_VRAM="64MiB"))
        self.assertEqual(figures["way"], "entry point")
        self.assert_one_weir(figures)
        self.assert_capped(figures)
        self.assertEqual(figures["checksum"], self.checksum_without_weir())

    def test_WeirRun_OfAnotherBuild_OnlyThePreloadedOneActs(self):
        done = self.python(f"import os; os.execv({str(BUILD / 'bin' / 'weir')!r}, ['weir', 'run', '--gpu', 'emulated', "
                           f"'--beside-real-gpu', '--vram', '64MiB', '--', {sys.executable!r}, '-c', {JOB!r}])",
                           self.environment())
        figures = json.loads(done.stdout)
        self.assertEqual(figures["way"], "LD_PRELOAD")
        self.assert_one_weir(figures)
        self.assert_capped(figures)
        for library in figures["libraries"]:
            self.assertTrue(library.startswith(os.path.realpath(BUILD)), library)

    def test_Pluggable_NamedByTheJobToo_OneWeirAndTheSameResult(self):
        """Code that names Weir by torch's own call, in an environment that names it too."""
        change = """
import torch, torch_weir
ours = torch.cuda.memory.CUDAPluggableAllocator(torch_weir.path(), "weir_malloc", "weir_free")
torch.cuda.memory.change_current_allocator(ours)
"""
        figures = self.result(change + JOB, self.emulated(WEIR_VRAM="64MiB"))
        self.assert_one_weir(figures)
        self.assertLessEqual(figures["stats"]["weir/peak_resident"], CAP)
        self.assertGreater(figures["stats"]["weir/evictions"], 0)
        self.assertEqual(figures["checksum"], self.checksum_without_weir())

    def test_TorchOfAnotherMinor_OneLineAndTheJobGoesOn(self):  # C128
        import torch
        minor = ".".join(torch.__version__.split(".")[:2])
        site = self.copy_without(f"lib/libweir_torch_{minor.replace('.', '_')}.so")
        self.assert_one_line(self.emulated(site, WEIR_VRAM="1GiB"), f"torch {minor} is not supported", "runs without Weir",
                             "works with torch")

    def test_SpawnedChild_HasTheCapOfTheEnvironment(self):
        program = """
import json, subprocess, sys, torch
child = "import torch, torch_weir, json; torch.ones(8, device='cuda'); print(json.dumps(torch_weir.stats()['weir/cap']))"
print(subprocess.run([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, check=True).stdout, end="")
"""
        self.assertEqual(self.result(program, self.emulated(WEIR_VRAM="64MiB")), CAP)


if __name__ == "__main__":
    unittest.main()
