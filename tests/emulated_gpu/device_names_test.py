"""How many devices a name means: each known profile alone, and with a number behind it.

Usage: device_names_test.py PRELOAD_LIBRARY
"""
import subprocess
import sys
import unittest

PRELOAD = sys.argv[1]
PROGRAM = "import ctypes, os\n" \
          "count = ctypes.c_int(-1)\n" \
          "print(ctypes.CDLL(os.environ['LD_PRELOAD']).cudaGetDeviceCount(ctypes.byref(count)), count.value)"


def count(name):
    """(cudaError, devices, stderr)"""
    done = subprocess.run([sys.executable, "-S", "-c", PROGRAM], capture_output=True, text=True,
                          env={"LD_PRELOAD": PRELOAD, "WEIR_GPU": f"emulated:{name}", "WEIR_EMULATED_CHOSEN": "1"})
    error, devices = map(int, done.stdout.split())
    return error, devices, done.stderr


class DeviceNamesTest(unittest.TestCase):
    def test_known_profiles(self):
        for name in ("h200", "h100", "a100-80g", "rtx4090", "rtx3060-12g"):
            self.assertEqual(count(name)[:2], (0, 1), name)

    def test_counted(self):
        self.assertEqual(count("rtx4090x2")[:2], (0, 2))
        self.assertEqual(count("h200x4")[:2], (0, 4))

    def test_names_that_mean_nothing(self):
        for name in ("rtx4091", "h200x0", "h200x99999999999999999999", "x4"):
            error, _, said = count(name)
            self.assertNotEqual(error, 0, name)
            self.assertEqual(said.count("\n"), 1, said)


unittest.main(argv=sys.argv[:1])
