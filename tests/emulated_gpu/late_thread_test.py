"""A thread that wants the GIL while the interpreter shuts down does not end the process with SIGABRT (thread_exit.c); other threads
end as ever.

Usage: late_thread_test.py PRELOAD_LIBRARY LATE_THREAD_LIBRARY
"""
import subprocess
import sys
import unittest

PRELOAD, LATE_THREAD = sys.argv[1:3]
PROGRAM = f"""
import ctypes
late = ctypes.CDLL({LATE_THREAD!r})
late.ResultOfAThread.restype = ctypes.c_void_p
print(late.ResultOfAThread(ctypes.c_void_p(7)), flush=True)
late.StartLateThread()
class Last:
    def __del__(self, late=late, print=print):
        while not late.LateThreadSleeps():
            pass
        print("it sleeps", flush=True)
last = Last()
"""


class LateThreadTest(unittest.TestCase):
    def test_shutdown(self):
        done = subprocess.run([sys.executable, "-c", PROGRAM], env={"LD_PRELOAD": PRELOAD, "WEIR_GPU": "emulated"}, timeout=60,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "7\nit sleeps\n", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
