"""A copy of Weir's layout (bin/weir and lib/ with stub libraries) in a temporary folder, and ways to run it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARIES = ("libweir_preload.so", "libweir_core.so", "libweir_torch_2_15.so", "emulated_gpu/libweir_emulated_gpu.so",
             "emulated_gpu/libcuda.so.1")
EMULATED = ("--gpu", "emulated")


class WeirTestCase(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        self.weir = self.folder / "bin" / "weir"
        self.weir.parent.mkdir()
        shutil.copy(os.environ["TEST_WEIR"], self.weir)
        for library in LIBRARIES:
            path = self.folder / "lib" / library
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.environ["TEST_STUB"], path)
        self.marker = self.folder / "started"

    def environment(self, **additions):
        """What a user's shell has, without any of Weir's or torch's variables, on a machine without a real driver."""
        names = ("PATH", "HOME", "LANG", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
        plain = {name: os.environ[name] for name in names if name in os.environ}
        return {**plain, "WEIR_EMULATED_REAL_DRIVER": "/nowhere", **additions}

    def run_weir(self, *arguments, cwd=None, stdin="", **environment):
        return subprocess.run([str(self.weir), *map(str, arguments)], env=self.environment(**environment), input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd or self.folder)

    def run_python(self, flags, program, *arguments, **environment):
        """`weir run FLAGS -- python -c PROGRAM ARGUMENTS`, the torch of that Python left out of sight."""
        return self.run_weir("run", *flags, "--", sys.executable, "-S", "-c", program, *arguments, **environment)

    def job_environment(self, *flags, **environment):
        """The environment of a job started with these flags."""
        done = self.run_weir("run", *flags, "--", "env", "-0", **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)

    def assert_refused(self, done, code, *parts):
        """One line on stderr with all the parts, nothing on stdout, the exit code, and the job was not started."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertFalse(self.marker.exists(), "the job was started")

    def json_of(self, *arguments, **environment):
        done = self.run_weir(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def make_torch(self, version, cuda=True):
        """A torch package that must not be imported."""
        package = self.folder / "packages" / "torch"
        (package / "lib").mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
        (package / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
        library = package / "lib" / "libtorch_cuda.so"
        library.touch()
        if not cuda:
            library.unlink()
        return {"PYTHONPATH": str(package.parent)}
