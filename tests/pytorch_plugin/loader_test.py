"""The loader: links libc only, is inert without CUDA, and says one line where it cannot bring Weir in.

FAKES is the folder with the stand-ins of torch and the program (see CMakeLists.txt), LOADER the library.
"""
import os
import re
import subprocess
import unittest

VERSIONS = os.environ["WEIR_TEST_TORCH_VERSIONS"]
LOADER = os.environ["WEIR_TEST_LOADER"]
FAKES = os.environ["WEIR_TEST_FAKES"]


def run(*libraries, **environment):
    inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME")}
    command = [f"{FAKES}/loader_program", *[f"{FAKES}/{name}" for name in libraries]]
    environment = {**inherited, "LD_PRELOAD": LOADER, "LD_LIBRARY_PATH": f"{FAKES}/cudart", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


CUDA = ("libc10_cuda.so", "libtorch_cuda.so")


class Loader(unittest.TestCase):
    def test_Loader_Needed_IsOnlyLibc(self):  # C116
        text = subprocess.run(["readelf", "-d", LOADER], capture_output=True, text=True, check=True).stdout
        needed = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]
        self.assertTrue(set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed)

    def test_Loader_Exports_AreThoseOfItsList(self):
        text = subprocess.run(["nm", "-D", "--defined-only", LOADER], capture_output=True, text=True, check=True)
        names = sorted(line.split()[-1] for line in text.stdout.splitlines())
        self.assertEqual(names, ["cuMemGetInfo_v2", "cudaGetDeviceCount", "cudaMemGetInfo", "weir_free", "weir_install",
                                 "weir_installed", "weir_malloc"])

    def test_ProgramWithoutCuda_Preloaded_NothingHappens(self):  # C116
        done = subprocess.run(["/bin/true"], env={"LD_PRELOAD": LOADER, "WEIR_REQUIRED": "1"}, capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_ProgramWithoutTorch_CountsDevices_NothingHappens(self):
        done = run(WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "devices=1\n", ""))

    def test_UnknownTorch_OneLineAndTheJobGoesOn(self):
        done = run("unknown/libtorch_cpu.so", *CUDA)
        self.assertEqual((done.returncode, done.stdout), (0, "devices=1\n"))
        self.assertEqual(done.stderr,
                         f"weir: torch 2.99 is not supported: the job runs without Weir (works with torch {VERSIONS})\n")

    def test_UnknownTorch_Required_ExitsWith4(self):
        done = run("unknown/libtorch_cpu.so", *CUDA, WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertRegex(done.stderr, rf"\Aweir: torch 2\.99 is not supported.*\(works with torch {re.escape(VERSIONS)}\)\n\Z")

    def test_CpuOnlyTorch_OneLineAndTheJobGoesOn(self):
        done = run("unknown/libtorch_cpu.so")
        self.assertEqual((done.returncode, done.stdout), (0, "devices=1\n"))
        self.assertRegex(done.stderr, r"\Aweir: this torch is a CPU-only build[^\n]*2\.15[^\n]*\n\Z")

    def test_CpuOnlyTorch_Required_ExitsWith4(self):
        self.assertEqual(run("unknown/libtorch_cpu.so", WEIR_REQUIRED="1").returncode, 4)

    def test_Disabled_NotAWord(self):
        done = run("unknown/libtorch_cpu.so", *CUDA, WEIR_DISABLE="1", WEIR_REQUIRED="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "devices=1\n", ""))


if __name__ == "__main__":
    unittest.main()
