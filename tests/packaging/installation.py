"""An installation of torch-weir, as pip would leave it, put together from the build that is there; and ways to run jobs in it.

The folder is on PYTHONPATH; torch is that of the Python that runs the test. TEST_BUILD: the build folder.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TEST_BUILD"])
CAP = 64 << 20
# A job of 256 MiB whose values come from the CPU. It prints one line of JSON: its checksum and what torch_weir says.
JOB = """
import json, sys, torch
generator = torch.Generator().manual_seed(7)
held = [torch.randn(1 << 20, generator=generator).cuda() for _ in range(64)]
for _ in range(2):
    held = [tensor * 1.5 + held[-1 - index] for index, tensor in enumerate(held)]
checksum = sum(float(tensor.double().sum()) for tensor in held)
figures = {}
if "torch_weir" in sys.modules:
    import torch_weir
    figures = {"stats": torch_weir.stats(), "way": torch_weir.status().way, "in_place": torch_weir.status().in_place}
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libweir_" in line and "emulated" not in line}
print(json.dumps({"checksum": checksum, "libraries": sorted(maps), **figures}))
"""
# Prints whether Weir is in place, and 2.0.
PROGRAM = ("import torch, torch_weir, json; total = torch.ones(2, device='cuda').sum().item(); "
           "print(json.dumps([torch_weir.status().in_place, total]))")


def _write_metadata(folder: pathlib.Path):
    """What importlib.metadata and `import torch` read; the wheel's own is tested by wheel_test.py."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    info = folder / "torch_weir-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-weir\nVersion: 0.1.0\n")
    entry = re.search(r'^torch_weir = "(torch_weir:\w+)"$', pyproject, re.M)[1]
    (info / "entry_points.txt").write_text(f"[torch.backends]\ntorch_weir = {entry}\n")


def make(folder: pathlib.Path) -> pathlib.Path:
    shutil.copytree(ROOT / "python" / "torch_weir", folder / "torch_weir", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["cmake", "--install", str(BUILD), "--component", "wheel", "--prefix", str(folder), "--strip"], check=True,
                   stdout=subprocess.DEVNULL)
    _write_metadata(folder)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder / "torch_weir")], check=True)
    return folder


class InstallationTestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.site = make(cls.scratch / "site")
        cls.package = cls.site / "torch_weir"

    def copy_without(self, *parts):
        """Another installation, from which some files are gone."""
        folder = tempfile.TemporaryDirectory(dir=self.scratch)
        self.addCleanup(folder.cleanup)
        site = pathlib.Path(folder.name, "site")
        shutil.copytree(self.site, site)
        for part in parts:
            (site / "torch_weir" / part).unlink()
        return site

    def environment(self, site=None, **variables):
        """Without any variable of Weir's or torch's but these."""
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "OMP_NUM_THREADS") if name in os.environ}
        return {**plain, "PYTHONPATH": str(site or self.site), **variables}

    def emulated(self, site=None, **variables):
        """As a machine with a card looks to the job: the emulated GPU is there, nothing of Weir's is preloaded."""
        preload = self.package / "lib" / "emulated_gpu" / "libweir_emulated_gpu.so"
        return self.environment(site, LD_PRELOAD=str(preload), WEIR_GPU="emulated:h200", WEIR_EMULATED_CHOSEN="1", **variables)

    def python(self, program, environment, *flags, code=0):
        done = subprocess.run([sys.executable, *flags, "-c", program], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.scratch)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def result(self, program, environment):
        """The line of JSON that the program prints."""
        return self.json(self.python(program, environment))

    def json(self, done):
        return json.loads(done.stdout.splitlines()[-1])

    def said(self, done):
        """The lines on stderr, those of the emulated GPU left out."""
        return [line for line in done.stderr.splitlines() if "emulated GPU" not in line]

    @functools.cache
    def checksum_without_weir(self):
        """With WEIR_VRAM in the environment, and disabled: torch's own allocator."""
        figures = self.result(JOB, self.emulated(WEIR_VRAM="64MiB", WEIR_DISABLE="1", WEIR_REQUIRED="1"))
        self.assertEqual((figures["libraries"], figures["in_place"]), ([], False))
        return figures["checksum"]

    def assert_capped(self, figures, cap=CAP):
        stats = figures["stats"]
        self.assertTrue(figures["in_place"])
        self.assertEqual(stats["weir/cap"], cap)
        self.assertLessEqual(stats["weir/peak_resident"], cap)
        self.assertGreater(stats["weir/evictions"], 0)
        self.assertGreater(stats["torch/allocated_bytes.all.peak"], cap)  # it did not fit

    def assert_one_line(self, environment, *parts, program=PROGRAM):
        """torch's own allocator does the job, and one line says why."""
        done = self.python(program, environment)
        self.assertEqual(json.loads(done.stdout), [False, 2.0])
        lines = self.said(done)
        self.assertEqual(len(lines), 1, done.stderr)
        for part in ("weir: ", *parts):
            self.assertIn(part, lines[0])

    def assert_one_weir(self, figures):
        """One loader, one core, one plugin in the process."""
        names = [pathlib.Path(library).name for library in figures["libraries"]]
        self.assertEqual(len(names), 3, names)
        self.assertEqual(len(set(names)), 3, names)
        self.assertTrue({"libweir_core.so", "libweir_preload.so"} <= set(names), names)
