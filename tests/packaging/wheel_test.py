"""The wheel, from `pip wheel` to `pip uninstall`: built, checked, installed into a fresh virtual environment, used, removed."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

from installation import CAP, JOB, ROOT

sys.path.insert(0, str(ROOT / "tools" / "packaging"))
import wheel  # noqa: E402


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        # Where the backend is there already, no registry is asked.
        more = ["--no-build-isolation"] if importlib.util.find_spec("scikit_build_core") else []
        cls.wheel = wheel.make(cls.scratch / "dist", *more)
        cls.python = cls.scratch / "env" / "bin" / "python"
        cls.run_command(sys.executable, "-m", "venv", cls.scratch / "env")
        cls.packages = pathlib.Path(cls.run_command(cls.python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
        cls.before = cls.files()
        cls.pip("install", "--no-index", "--no-deps", cls.wheel)
        # torch, without downloading it once more.
        (cls.packages / "torch_elsewhere.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    @classmethod
    def run_command(cls, *words, **variables):
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "OMP_NUM_THREADS") if name in os.environ}
        done = subprocess.run([str(word) for word in words], env={**plain, **variables}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cls.scratch)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    @classmethod
    def pip(cls, *words):
        cls.run_command(cls.python, "-m", "pip", "--disable-pip-version-check", *words)

    @classmethod
    def files(cls):
        """All of the environment, but what Python caches of its own and others' modules."""
        return {str(path.relative_to(cls.scratch / "env")) for path in (cls.scratch / "env").rglob("*")
                if path.name != "torch_elsewhere.pth" and ("weir" in str(path) or "__pycache__" not in path.parts)}

    def emulated(self, **variables):
        preload = self.run_command(self.scratch / "env" / "bin" / "weir", "path", "--emulated-gpu").strip()
        return {"LD_PRELOAD": preload, "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1", **variables}

    def test_Name_AndMetadata_AskForNoTorchAndNoPythonVersion(self):
        self.assertRegex(self.wheel.name, r"^torch_weir-[\d.]+-py3-none-manylinux_2_34_x86_64\.whl$")
        with zipfile.ZipFile(self.wheel) as packed:
            metadata, tags = (next(packed.read(name).decode() for name in packed.namelist() if name.endswith(f".dist-info/{file}"))
                              for file in ("METADATA", "WHEEL"))
        self.assertNotIn("Requires-Dist", metadata)
        self.assertIn("Requires-Python: >=3.10\n", metadata)
        self.assertIn("Tag: py3-none-manylinux_2_34_x86_64\n", tags)

    def test_Contents_AreLibrariesCommandAndTypes(self):
        with zipfile.ZipFile(self.wheel) as packed:
            names = set(packed.namelist())
            of_this_machine = [name for name in names if str(ROOT).encode() in packed.read(name)]
        built = {path.name for path in (ROOT / "build-wheel" / "lib").glob("libweir_torch_*.so")}
        self.assertTrue(built)
        wanted = {"bin/weir", "py.typed", "lib/libweir_core.so", "lib/libweir_preload.so", "lib/emulated_gpu/libcuda.so.1",
                  "lib/emulated_gpu/libweir_emulated_gpu.so", "lib/emulated_gpu/libnvidia-ml.so.1", *(f"lib/{name}" for name in built)}
        self.assertLessEqual({f"torch_weir/{name}" for name in wanted}, names)
        self.assertEqual([name for name in names if re.search(r"README|__pycache__|/lib(stdc|gcc)", name)], [])
        self.assertEqual(of_this_machine, [])  # no path of this machine

    def test_Checks_FindWhatIsNotInIt(self):
        """wheel.problems() is not blind: a library of the wheel without those that it needs."""
        with zipfile.ZipFile(self.wheel) as packed, tempfile.TemporaryDirectory() as folder:
            packed.extract("torch_weir/lib/libweir_core.so", folder)
            found = wheel.problems(pathlib.Path(folder))
        self.assertTrue(found)
        self.assertEqual([text for text in found if not re.fullmatch(r"libweir_core\.so needs libabsl_\w+\.so\.\d+", text)], [])

    def test_Variable_Set_JobRunsCapped(self):
        figures = json.loads(self.run_command(self.python, "-c", JOB, **self.emulated(WEIR_VRAM="64MiB")))
        self.assertEqual((figures["in_place"], figures["way"], figures["stats"]["weir/cap"]), (True, "entry point", CAP))
        self.assertLessEqual(figures["stats"]["weir/peak_resident"], CAP)
        self.assertGreater(figures["stats"]["weir/evictions"], 0)
        for library in figures["libraries"]:
            self.assertTrue(library.startswith(str(self.packages.resolve())), library)
        native = json.loads(self.run_command(self.python, "-c", JOB, **self.emulated()))
        self.assertEqual((figures["checksum"], native["libraries"]), (native["checksum"], []))

    def test_Command_RunsAndDryRuns(self):
        weir = self.scratch / "env" / "bin" / "weir"
        self.assertRegex(self.run_command(weir, "--version"), r"^weir \d+\.\d+\.\d+\n$")
        with self.assertRaisesRegex(AssertionError, '"youngest" is none of auto, lru'):  # which only tests want
            self.run_command(weir, "config", WEIR_POLICY="youngest")
        done = json.loads(self.run_command(weir, "run", "--gpu", "emulated", "--beside-real-gpu", "--vram", "64MiB", "--", self.python,
                                           "-c", JOB))
        self.assertEqual((done["way"], len(done["libraries"])), ("LD_PRELOAD", 3))
        report = json.loads(self.run_command(weir, "dryrun", "--gpu", "rtx3060-12g", "--json", "--", self.python, "-c",
                                             "import torch; x = torch.ones(1 << 20, device='cuda')"))
        self.assertTrue(report)

    def test_Uninstall_LeavesNoFile(self):
        self.run_command(self.python, "-c", "import torch_weir; torch_weir.status()")
        self.assertGreater(len(self.files()), len(self.before))
        self.pip("uninstall", "-y", "torch-weir")
        try:
            self.assertEqual(self.files() - self.before, set())
        finally:
            self.pip("install", "--no-index", "--no-deps", self.wheel)


class OtherPythons(unittest.TestCase):
    def test_Sources_AreForPython310(self):
        """What 3.11 and later alone understand is a SyntaxError for 3.10's grammar."""
        import ast
        for path in (ROOT / "python" / "torch_weir").glob("*.py"):
            ast.parse(path.read_text(), feature_version=(3, 10))


if __name__ == "__main__":
    unittest.main()
