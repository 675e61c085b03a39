"""NVML on the emulated GPU, and several processes on one emulated card, by ctypes alone.

Usage: monitors_test.py PRELOAD_LIBRARY
"""
import ctypes
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import tempfile
import unittest

MIB = 1 << 20
NOT_SUPPORTED, UNINITIALIZED, INVALID, INSUFFICIENT = 3, 1, 2, 7  # nvmlReturn_t

# What the processes under test begin with: `cuda` is cudart, `nvml` is NVML as a monitor opens it.
PROLOGUE = """
import ctypes, os, sys
from ctypes import byref, c_uint, c_void_p, c_size_t, c_ulonglong, create_string_buffer as room
MIB = 1 << 20
cuda = ctypes.CDLL(os.environ["LD_PRELOAD"])
nvml = ctypes.CDLL("libnvidia-ml.so.1")

class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]
class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("bytes", c_ulonglong), ("gpu", c_uint), ("compute", c_uint)]

def card(index=0):
    handle = c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(handle)) == 0
    return handle
def memory(handle):
    found = Memory()
    assert nvml.nvmlDeviceGetMemoryInfo(handle, byref(found)) == 0
    return found
def processes(handle):
    count, found = c_uint(8), (Process * 8)()
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, byref(count), found) == 0
    return {found[i].pid: found[i].bytes // MIB for i in range(count.value)}
def malloc(mib):
    return cuda.cudaMalloc(byref(c_void_p()), c_size_t(mib * MIB))
def free_mib():
    free, total = c_size_t(), c_size_t()
    assert cuda.cudaMemGetInfo(byref(free), byref(total)) == 0
    return free.value // MIB
def say(*words):
    print(*words, flush=True)
"""


def environment(**more):
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("WEIR_", "CUDA_"))}
    return kept | {"LD_PRELOAD": sys.argv[1], "WEIR_GPU": "emulated:h200", "WEIR_EMULATED_CHOSEN": "1",
                   "WEIR_EMULATED_VRAM": "256MiB"} | more


def start(program, **more):
    return subprocess.Popen([sys.executable, "-c", PROLOGUE + program], env=environment(**more), text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class NvmlTest(unittest.TestCase):
    def run_program(self, program, **more):
        process = start(program, **more)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out.split(), err

    def test_before_the_first_use_of_cuda(self):
        out, err = self.run_program("""
say(nvml.nvmlDeviceGetCount_v2(byref(c_uint())))
count, name = c_uint(), room(96)
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(byref(count)) == 0
assert nvml.nvmlDeviceGetName(card(), name, 96) == 0
say(count.value, memory(card()).total, memory(card()).used, len(processes(card())), name.value.decode())
assert nvml.nvmlShutdown() == 0
say(nvml.nvmlShutdown())
""")
        self.assertEqual(out, [str(UNINITIALIZED), "1", str(256 * MIB), "0", "0", "NVIDIA", "H200", "(emulated", "by", "Weir)",
                               str(UNINITIALIZED)])
        self.assertEqual(err, "", "a monitor starts no device")

    def test_memory_and_processes_are_those_of_cuda(self):
        out, _ = self.run_program("""
nvml.nvmlInit_v2()
assert malloc(64) == 0
say(memory(card()).used // MIB, memory(card()).free // MIB == free_mib(), processes(card()) == {os.getpid(): 64})
""")
        self.assertEqual(out, ["64", "True", "True"])

    def test_a_list_without_room_tells_what_it_needs(self):
        out, _ = self.run_program("""
nvml.nvmlInit_v2()
malloc(1)
count = c_uint(0)
say(nvml.nvmlDeviceGetComputeRunningProcesses_v3(card(), byref(count), None), count.value)
""")
        self.assertEqual(out, [str(INSUFFICIENT), "1"])

    def test_what_no_profile_has_is_not_supported(self):
        out, _ = self.run_program("""
nvml.nvmlInit_v2()
value = c_uint()
say(nvml.nvmlDeviceGetTemperature(card(), 0, byref(value)), nvml.nvmlDeviceGetPowerUsage(card(), byref(value)))
say(nvml.nvmlDeviceGetClockInfo(card(), 1, byref(value)), value.value)
say(nvml.nvmlDeviceGetClockInfo(c_void_p(16), 1, byref(value)), nvml.nvmlDeviceGetClockInfo(card(), 1, None))
""")
        clock = "1980"  # MHz: H200's largest SM clock, device-profiles.md
        self.assertEqual(out, [str(NOT_SUPPORTED)] * 2 + ["0", clock, str(INVALID), str(INVALID)])

    def test_handles_lead_to_the_card_from_each_side(self):
        out, _ = self.run_program("""
nvml.nvmlInit_v2()
uuid, bus = room(96), room(32)
assert cuda.cudaDeviceGetPCIBusId(bus, 32, 0) == 0 and nvml.nvmlDeviceGetUUID(card(), uuid, 96) == 0
by_bus, by_uuid = c_void_p(), c_void_p()
say(nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, byref(by_bus)), nvml.nvmlDeviceGetHandleByUUID(uuid, byref(by_uuid)))
say(by_bus.value == by_uuid.value == card().value, nvml.nvmlDeviceGetHandleByUUID(b"GPU-0", byref(by_uuid)))
""")
        self.assertEqual(out, ["0", "0", "True", "6"])  # NVML_ERROR_NOT_FOUND

    def test_an_unknown_profile_has_no_driver(self):
        out, _ = self.run_program("say(nvml.nvmlInit_v2())", WEIR_GPU="emulated:h999")
        self.assertEqual(out, ["9"])  # NVML_ERROR_DRIVER_NOT_LOADED


class SharedCardTest(unittest.TestCase):
    def setUp(self):
        self.shared = secrets.token_hex(16)
        self.file = pathlib.Path("/dev/shm/weir-emulated-" + self.shared)
        self.addCleanup(self.file.unlink, missing_ok=True)

    def hold(self, mib):
        """A process that holds so much of the card until it is told to end."""
        process = start(f"say(malloc({mib}))\nsys.stdin.read()", WEIR_EMULATED_SHARED=self.shared)
        self.addCleanup(process.wait)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "0\n")
        return process

    def ask(self, program, shared=None):
        process = start(program, WEIR_EMULATED_SHARED=self.shared if shared is None else shared)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        return out.split(), err

    def test_what_one_takes_the_other_has_not(self):
        self.hold(100)
        out, _ = self.ask("say(free_mib(), malloc(157), malloc(100), free_mib(), malloc(56), malloc(1))")
        self.assertEqual(out, ["156", "2", "0", "56", "0", "2"])  # 2: cudaErrorMemoryAllocation

    def test_nvml_lists_them(self):
        one, other = self.hold(100), self.hold(20)
        out, _ = self.ask("nvml.nvmlInit_v2()\nsay(memory(card()).used // MIB)\nfor item in processes(card()).items(): say(*item)")
        self.assertEqual(out[0], "120")
        self.assertEqual(set(zip(out[1::2], out[2::2])), {(str(one.pid), "100"), (str(other.pid), "20")})

    def test_a_killed_process_gives_its_share_back(self):
        holder = self.hold(200)
        self.assertEqual(self.ask("say(free_mib())")[0], ["56"])
        holder.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet collected
        self.assertEqual(self.ask("say(malloc(256))")[0], ["0"])

    def test_a_program_in_the_place_of_another_begins_with_nothing(self):
        again = "os.execv(sys.executable, [sys.executable, '-c', 'import sys; exec(sys.argv[1])', PROGRAM])"
        program = f"PROGRAM = {PROLOGUE + 'say(free_mib())'!r}\nsay(malloc(200))\n{again}"
        self.assertEqual(self.ask(program)[0], ["0", "256"])

    def test_the_file_is_private_and_goes_with_its_last_process(self):
        holder = self.hold(1)
        self.ask("say(malloc(1))")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        holder.communicate()
        self.assertFalse(self.file.exists())

    def test_what_a_killed_process_left_goes_with_the_next_run(self):
        holder = self.hold(1)
        holder.kill()
        holder.wait()
        self.assertTrue(self.file.exists())
        self.ask("say(malloc(1))", shared=secrets.token_hex(16))
        self.assertFalse(self.file.exists())

    def test_a_file_that_others_can_read_is_told_and_not_used(self):
        self.file.touch(0o644)
        out, err = self.ask("say(malloc(256))")
        self.assertEqual(out, ["0"])
        self.assertIn("WEIR_EMULATED_SHARED", err)
        self.assertEqual(self.file.read_bytes(), b"")

    def test_a_link_is_not_followed(self):
        with tempfile.NamedTemporaryFile() as target:
            self.file.symlink_to(target.name)
            self.assertIn("WEIR_EMULATED_SHARED", self.ask("say(malloc(1))")[1])
            self.assertEqual(os.stat(target.name).st_size, 0)

    def test_a_name_with_a_path_is_not_used(self):
        self.assertIn("WEIR_EMULATED_SHARED", self.ask("say(malloc(1))", shared="../../tmp/x")[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
