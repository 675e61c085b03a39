"""Bytes in use on the device by NVML, sampled while a job runs: the judge from outside of what Weir counts."""
import ctypes
import os
import threading


class _Memory(ctypes.Structure):  # nvmlMemory_t
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Device:
    """The first visible device. Raises OSError, with the reason, where NVML does not tell."""

    def __init__(self):
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._must(self._nvml.nvmlInit_v2(), "nvmlInit")
        self._handle = ctypes.c_void_p()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() or "0"
        if first.isdigit():
            found = self._nvml.nvmlDeviceGetHandleByIndex_v2(int(first), ctypes.byref(self._handle))
        else:
            found = self._nvml.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(self._handle))
        self._must(found, f"NVML knows no device {first}")

    @staticmethod
    def _must(code: int, what: str):
        if code != 0:
            raise OSError(f"{what}: NVML error {code}")

    def used(self) -> int:
        memory = _Memory()
        self._must(self._nvml.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory)), "nvmlDeviceGetMemoryInfo")
        return memory.used


class Peak:
    """with Peak(device) as peak: …; then peak.bytes is the most in use over what was in use at the start.

    Sampled every 5 ms: a peak that lasts for less can be missed. device None: bytes stays None.
    """

    def __init__(self, device):
        self._device, self.bytes = device, None
        self._stop = threading.Event()

    def _sample(self):
        while not self._stop.wait(0.005):
            self.bytes = max(self.bytes, self._device.used() - self._baseline)

    def __enter__(self):
        if self._device:
            self._baseline, self.bytes = self._device.used(), 0
            self._thread = threading.Thread(target=self._sample)
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        if self._device:
            self._thread.join()
