"""LD_PRELOAD and WEIR_GPU that were left over in an environment must not hide a real card.

Usage: real_driver_test.py PRELOAD_LIBRARY
"""
import subprocess
import sys
import tempfile

# The preload library alone answers: no torch, no driver.
PROGRAM = "import ctypes, os\n" \
          "count = ctypes.c_int(-1)\n" \
          "print(ctypes.CDLL(os.environ['LD_PRELOAD']).cudaGetDeviceCount(ctypes.byref(count)), count.value)"


def answer(**environment):
    environment = {"LD_PRELOAD": sys.argv[1], "WEIR_GPU": "emulated:h200", **environment}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)


with tempfile.NamedTemporaryFile() as driver:
    beside = answer(WEIR_EMULATED_REAL_DRIVER=driver.name)
    assert beside.stdout == "100 -1\n", beside  # cudaErrorNoDevice
    assert beside.stderr.count("refused") == 1 and driver.name in beside.stderr, beside
    assert "weir run --gpu emulated" in beside.stderr, beside
    chosen = answer(WEIR_EMULATED_REAL_DRIVER=driver.name, WEIR_EMULATED_CHOSEN="1")
    assert chosen.stdout == "0 1\n" and "refused" not in chosen.stderr, chosen
alone = answer(WEIR_EMULATED_REAL_DRIVER="/nowhere/version")
assert alone.stdout == "0 1\n" and "refused" not in alone.stderr, alone
