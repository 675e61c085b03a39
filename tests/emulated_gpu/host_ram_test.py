"""Kernels `none`: pinned memory is that of the profile's host, not this machine's.

Usage: host_ram_test.py LIBCUDA WEIR, run by the Python of a job.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBCUDA, WEIR = sys.argv[1:3]
OUT_OF_MEMORY = 2  # cuda.h
GIB = 1 << 30

# Answers each line of Python with a line.
DRIVER = f"""
import ctypes, sys
cuda = ctypes.CDLL({LIBCUDA!r})
context, pointer, size = ctypes.c_void_p(), ctypes.c_void_p, ctypes.c_size_t
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
cuda.weir_emulated_host_ram.restype = ctypes.c_uint64
def pin(bytes):
    address = pointer()
    code = cuda.cuMemHostAlloc(ctypes.byref(address), size(bytes), 0)
    return code, address
def register(address, bytes):
    return cuda.cuMemHostRegister_v2(pointer(address), size(bytes), 0)
for line in sys.stdin:
    print(eval(line), flush=True)
"""

# Under a cap of 24 GiB three of the four are in RAM when the last one is made.
SPILLS = """
import torch
tensors = [torch.empty(20 << 30, dtype=torch.uint8, device="cuda").fill_(0) for _ in range(4)]
sums = [tensor[:1].sum() for tensor in tensors]
torch.cuda.synchronize()
with open("/proc/self/status") as status:
    print([line.split()[1] for line in status if line.startswith("VmHWM")][0])
"""


class Process:
    def __init__(self, profile, shared=""):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        self._process = subprocess.Popen([sys.executable, "-S", "-c", DRIVER], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL,
                                         env=kept | {"WEIR_GPU": f"emulated:{profile}", "WEIR_EMULATED_CHOSEN": "1",
                                                     "WEIR_KERNELS": "none", "WEIR_EMULATED_SHARED": shared})

    def ask(self, expression):
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self):
        self._process.communicate()


class HostRamTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.profile = str(pathlib.Path(folder.name, "small.profile"))
        pathlib.Path(self.profile).write_text("base h200\nhost_ram_gib 8  # made up\n")


class DriverTest(HostRamTestCase):
    def start(self, *arguments):
        process = Process(self.profile, *arguments)
        self.addCleanup(process.end)
        return process

    def test_pinned_memory_ends_with_the_ram_of_the_profile(self):
        process = self.start()
        self.assertEqual(process.ask("cuda.weir_emulated_host_ram() >> 20"), str(8 << 10))
        self.assertEqual(process.ask("(first := pin(6 << 30))[0]"), "0")
        self.assertEqual(process.ask("pin(3 << 30)[0]"), str(OUT_OF_MEMORY))
        self.assertEqual(process.ask("pin(2 << 30)[0]"), "0")
        self.assertEqual(process.ask("pin(1)[0]"), str(OUT_OF_MEMORY))
        self.assertEqual(process.ask("cuda.cuMemFreeHost(first[1])"), "0")
        self.assertEqual(process.ask("pin(6 << 30)[0]"), "0")

    def test_registered_memory_counts(self):
        process = self.start()
        self.assertEqual(process.ask("pin((8 << 30) - 4096)[0]"), "0")
        self.assertEqual(process.ask("(own := ctypes.create_string_buffer(1 << 16)) and register(ctypes.addressof(own), 8192)"),
                         str(OUT_OF_MEMORY))
        self.assertEqual(process.ask("register(ctypes.addressof(own), 4096)"), "0")
        self.assertEqual(process.ask("pin(1)[0]"), str(OUT_OF_MEMORY))
        self.assertEqual(process.ask("cuda.cuMemHostUnregister(pointer(ctypes.addressof(own)))"), "0")
        self.assertEqual(process.ask("pin(4096)[0]"), "0")

    def test_processes_of_a_job_share_the_host(self):
        shared = f"{os.getpid():x}f00d"
        first, second = self.start(shared), self.start(shared)
        self.assertEqual(first.ask("pin(6 << 30)[0]"), "0")
        self.assertEqual(second.ask("pin(3 << 30)[0]"), str(OUT_OF_MEMORY))
        self.assertEqual(second.ask("pin(2 << 30)[0]"), "0")
        first.end()
        self.assertEqual(second.ask("pin(6 << 30)[0]"), "0")


class SpillTest(HostRamTestCase):
    def run_job(self, profile):
        return subprocess.run([WEIR, "run", "--gpu", f"emulated:{profile}", "--beside-real-gpu", "--kernels", "none", "--vram", "24GiB",
                               "--", sys.executable, "-c", SPILLS], capture_output=True, text=True)

    def test_job_spills_more_than_this_machine_has(self):
        done = self.run_job("h200")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("reports=0", done.stderr)
        self.assertIn("up to 128.00 GiB, WEIR_RAM", done.stderr)  # half of the profile's
        # 80 GiB, of which the card holds 24: the others are nowhere but in RAM.
        self.assertLessEqual(int(re.search(r"peak_bytes=(\d+)", done.stderr)[1]), 24 * GIB)
        self.assertLess(int(done.stdout), 4 << 20, "KiB of this machine's RAM")

    def test_job_does_not_spill_more_than_the_host_has(self):
        done = self.run_job(self.profile)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("OutOfMemoryError", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
