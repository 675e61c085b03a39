"""`weir doctor` says by which way a job would get Weir, and by which one a running process has it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from installed_weir import WeirTestCase

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python" / "torch_weir"
DRIVER = {"LD_LIBRARY_PATH": os.environ["TEST_DRIVER_FOLDER"]}


class WayTest(WeirTestCase):
    def found(self, subject, *arguments, code=0, **environment):
        """(verdict, text) of each finding of the subject."""
        done = self.run_weir("doctor", "--json", *arguments, **{**DRIVER, **self.make_torch("2.15.0"), **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return [(finding["verdict"], finding["text"]) for finding in json.loads(done.stdout)["findings"]
                if finding["subject"] == subject]

    def way(self, code=0, **environment):
        return self.found("way", sys.executable, code=code, **environment)

    def assert_ways(self, found, *expected):
        """Verdicts, and a part of each text."""
        self.assertEqual([verdict for verdict, _ in found], [verdict for verdict, _ in expected], found)
        for (_, text), (_, part) in zip(found, expected):
            self.assertIn(part, text)

    def install_package(self, version=None, entry_point=True):
        """torch_weir, as pip leaves it in the Python that the doctor is asked about."""
        version = version or self.run_weir("--version").stdout.split()[1]
        packages = self.folder / "packages"
        shutil.copytree(PACKAGE, packages / "torch_weir", ignore=shutil.ignore_patterns("__pycache__"))
        info = packages / f"torch_weir-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch-weir\nVersion: {version}\n")
        if entry_point:
            (info / "entry_points.txt").write_text("[torch.backends]\ntorch_weir = torch_weir:_autoload\n")
        return packages / "torch_weir"

    def test_nothing_brings_weir(self):
        self.assert_ways(self.way(), ("ok", "none is asked for: `weir run`"))
        self.assert_ways(self.way(WEIR_VRAM="1GiB"), ("warning", "none: WEIR_VRAM is set, but nothing is preloaded"))
        self.assertEqual(self.way(WEIR_VRAM="1GiB", WEIR_DISABLE="1"), [])

    def test_preloaded(self):
        loader = str(self.folder / "lib" / "libweir_preload.so")
        self.assert_ways(self.way(LD_PRELOAD=loader), ("ok", "LD_PRELOAD: every process"))
        self.assert_ways(self.way(LD_PRELOAD=loader, WEIR_REQUIRED="1"), ("ok", "`weir run`"))
        elsewhere = self.folder / "other" / "libweir_preload.so"
        elsewhere.parent.mkdir()
        shutil.copy(loader, elsewhere)
        self.assert_ways(self.way(LD_PRELOAD=str(elsewhere)), ("ok", "LD_PRELOAD"), ("warning", f"another Weir than this command: {elsewhere}"))
        elsewhere.unlink()
        self.assert_ways(self.way(LD_PRELOAD=str(elsewhere)), ("warning", f"{elsewhere}, which is not there"))

    def test_entry_point(self):
        folder = self.install_package()
        self.assert_ways(self.way(), ("ok", "none is asked for: torch_weir"))
        self.assert_ways(self.way(WEIR_LOG="info"), ("ok", "none is asked for"))  # says how Weir speaks, asks for nothing
        found = self.way(WEIR_VRAM="1GiB")
        self.assert_ways(found, ("ok", "the entry point torch.backends"))
        self.assertIn(str(folder), found[0][1])
        self.assert_ways(self.way(WEIR_VRAM="1GiB", TORCH_DEVICE_BACKEND_AUTOLOAD="0"), ("warning", "TORCH_DEVICE_BACKEND_AUTOLOAD=0"))
        # What is preloaded goes first.
        self.assert_ways(self.way(WEIR_VRAM="1GiB", LD_PRELOAD=str(self.folder / "lib" / "libweir_preload.so")), ("ok", "LD_PRELOAD"))

    def test_package_without_entry_point(self):
        self.install_package(entry_point=False)
        self.assert_ways(self.way(WEIR_VRAM="1GiB"), ("warning", "not among torch's entry points"))

    def test_package_of_another_version(self):
        self.install_package(version="0.0.1")
        self.assert_ways(self.way(), ("ok", "torch_weir 0.0.1"), ("warning", "torch_weir 0.0.1"))

    def test_package_that_is_damaged(self):
        (self.install_package() / "_loader.py").unlink()
        self.assert_ways(self.way(code=4, WEIR_VRAM="1GiB"), ("problem", "cannot be imported"))

    def running(self, *libraries, **environment):
        """What the doctor says of a process that has loaded these libraries by itself."""
        program = "import ctypes, sys; kept = [ctypes.CDLL(path) for path in sys.argv[1:]]; print(flush=True); sys.stdin.read()"
        command = [sys.executable, "-S", "-c", program, *(str(self.folder / "lib" / library) for library in libraries)]
        with subprocess.Popen(command, env=self.environment(**environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            found = self.found("job", "--job", process.pid, sys.executable)
            process.stdin.close()
        return found

    def test_running_job(self):
        loader, plugin = "libweir_preload.so", "libweir_torch_2_15.so"
        preload = {"LD_PRELOAD": str(self.folder / "lib" / loader)}
        self.assert_ways(self.running(), ("warning", "has no Weir in it"))
        self.assert_ways(self.running(**preload), ("warning", "by LD_PRELOAD, and no plugin"))
        self.assert_ways(self.running(plugin, **preload), ("ok", f"has Weir by LD_PRELOAD: {self.folder / 'lib' / plugin}"))
        self.assert_ways(self.running(plugin, WEIR_REQUIRED="1", **preload), ("ok", "has Weir by `weir run`"))
        self.assert_ways(self.running(loader, plugin, WEIR_VRAM="1GiB"), ("ok", "has Weir by the entry point"))
        self.assert_ways(self.running(loader, plugin), ("ok", "has Weir by torch_weir.install()"))

    def test_job_that_does_not_run(self):
        for job in ("4194305", "self", "../self"):  # above what the system gives out; no numbers
            self.assert_refused(self.run_weir("doctor", "--job", job, sys.executable), 2, job)
