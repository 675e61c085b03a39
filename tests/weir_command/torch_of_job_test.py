"""Which torch a job would load is known before it starts, without importing it."""
import os
import pathlib
import sys

from installed_weir import EMULATED, WeirTestCase


class TorchTest(WeirTestCase):
    def run_job(self, *command, **environment):
        return self.run_weir("run", *EMULATED, "--", *command, **environment)

    def touch(self, python=sys.executable):
        return [python, "-c", f"open({str(self.marker)!r}, 'w')"]

    def test_known_version_runs(self):
        done = self.run_job(*self.touch(), **self.make_torch("2.15.1+cu130"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.marker.exists())

    def test_version_is_in_the_json(self):
        done = self.run_weir("run", *EMULATED, "--json", "--", *self.touch(), **self.make_torch("2.15.1+cu130"))
        self.assertIn('"torch": "2.15.1+cu130"', done.stdout)

    def test_unknown_versions_are_refused(self):
        for version in ("2.3.0+cu121", "2.150.0", "2.16.0a0+git1234", "1.2.15"):
            done = self.run_job(*self.touch(), **self.make_torch(version))
            self.assert_refused(done, 4, version, "2.15")

    def test_cpu_only_is_refused(self):
        done = self.run_job(*self.touch(), **self.make_torch("2.15.0+cpu", cuda=False))
        self.assert_refused(done, 4, "CPU-only", "2.15")

    def test_disabled_is_not_checked(self):
        done = self.run_job(*self.touch(), **self.make_torch("2.3.0"), WEIR_DISABLE="1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_script_of_python_is_checked(self):
        name = pathlib.Path(sys.executable).name
        for first_line in (f"#!{sys.executable}", f"#!/usr/bin/env {name}"):
            script = self.folder / "train"
            script.write_text(f"{first_line}\nopen({str(self.marker)!r}, 'w')\n")
            script.chmod(0o755)
            path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
            done = self.run_job(script, **self.make_torch("2.3.0"), PATH=path)
            self.assert_refused(done, 4, "2.3.0")

    def test_shell_script_is_left_to_the_loader(self):
        done = self.run_job("sh", "-c", f"touch {self.marker}", **self.make_torch("2.3.0"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.marker.exists())

    def test_folder_named_torch_beside_the_script_is_not_taken(self):
        other = self.folder / "torch"
        other.mkdir()
        (other / "__init__.py").touch()
        (other / "version.py").write_text("__version__ = '0.1'\n")
        done = self.run_job(*self.touch(), **self.make_torch("2.15.0"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_executable_linked_with_libtorch(self):
        folder = pathlib.Path(os.environ["TEST_LIBTORCH_FOLDER"])
        version, library = folder / "build-version", folder / "lib" / "libtorch_cuda.so"
        self.addCleanup(lambda: [path.unlink() for path in (version, library) if path.exists()])
        job = os.environ["TEST_LIBTORCH_JOB"]
        version.write_text("2.14.1+cu128\n")
        self.assert_refused(self.run_job(job), 4, "CPU-only", "2.15")
        library.touch()
        self.assert_refused(self.run_job(job), 4, "2.14.1", "2.15")
        version.write_text("2.15.0+cu130\n")
        self.assertEqual(self.run_job(job).returncode, 0)
