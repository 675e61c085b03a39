"""What torch_weir takes for granted of Weir: the figures of core_abi.h, sizes as the options read them. No torch."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = pathlib.Path(os.environ["TEST_BUILD"]) / "bin" / "weir"
sys.path.insert(0, str(ROOT / "python"))
from torch_weir import _core, _entry_point, _sizes  # noqa: E402

HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "pytorch_plugin" / "core_abi.h").read_text(), flags=re.S)
TYPES = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "char": ctypes.c_char,
         "WeirStat": _core.Stat}


def fields_of(struct):
    """(name, type, count) of each member, as the header declares it."""
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (struct, struct), HEADER, re.S)[1]
    pools = int(re.search(r"WEIR_POOLS = (\d+)", HEADER)[1])
    for kind, names in re.findall(r"(\w+) ([^;]+);", body):
        for name, count in re.findall(r"(\w+)(?:\[(\w+)\])?", names):
            yield name, TYPES[kind], 0 if not count else pools if count == "WEIR_POOLS" else int(count)


class Layout(unittest.TestCase):
    def test_Structs_AreThoseOfTheHeader(self):
        for struct, ours in (("WeirStat", _core.Stat), ("WeirDeviceStats", _core.DeviceStats), ("WeirError", _core.Error)):
            declared = [(name, kind * count if count else kind) for name, kind, count in fields_of(struct)]
            self.assertEqual(ours._fields_, declared, struct)

    def test_Versions_OfThePackageAndThePackagesMetadata(self):
        version = subprocess.run([WEIR, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        pattern = re.search(r"^regex = '(.+)'$", (ROOT / "pyproject.toml").read_text(), re.M)[1]
        self.assertEqual(re.search(pattern, (ROOT / "CMakeLists.txt").read_text(), re.M)["value"], version)


class Sizes(unittest.TestCase):
    TEXTS = ("2MiB", "2097151", "2097152", "24GiB", "24G", "24GB", "24Gb", "1.5GiB", "1.5", "1.5B", "512M", "1K", "16777216TiB", "16777215TiB",
             "1TB", "0", "", " 1GiB", "1 GiB", "-1GiB", "1e3", "1GiB ", "0:20GiB,1:40GiB", "0:20GiB,0:40GiB", "0:", ":1GiB", "x:1GiB",
             "0:1GiB,", "٣GiB", "٣:1GiB")

    def test_Caps_AreAcceptedWhereTheCommandAcceptsThem(self):
        for text in self.TEXTS:
            environment = {**os.environ, "WEIR_VRAM": text}
            accepted = text != "" and subprocess.run([WEIR, "config"], env=environment, stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL).returncode == 0
            with self.subTest(text):
                try:
                    _sizes.caps(text)
                    self.assertTrue(accepted, "the command refuses it")
                except ValueError:
                    self.assertFalse(accepted, "the command accepts it")

    def test_Caps_AreInBytes(self):
        self.assertEqual(_sizes.caps("1.5GiB"), {_sizes.EVERY: 3 << 29})
        self.assertEqual(_sizes.caps("24GB"), {_sizes.EVERY: 24 * 10**9})
        self.assertEqual(_sizes.caps(2 << 30), {_sizes.EVERY: 2 << 30})
        self.assertEqual(_sizes.caps("0:20GiB,1:512M"), {0: 20 << 30, 1: 512 << 20})


class SetCap(unittest.TestCase):
    """set() against a stand-in of the core: what crosses the C ABI, and what comes back."""

    def setUp(self):
        self.calls = []

    def weir_set_cap(self, device, cap, error):
        self.calls.append((type(device), device.value, type(cap), cap.value))
        if device.value != 1:
            return 0
        ctypes.cast(error, ctypes.POINTER(_core.Error)).contents.text = "it does not fit".encode()
        return 1

    def test_Sizes_GoToTheDevicesThatAreNamed(self):
        with mock.patch.object(_core, "loaded", lambda: self):
            _core.set_cap("0:20GiB,2:512M")
        self.assertEqual(self.calls, [(ctypes.c_int32, 0, ctypes.c_uint64, 20 << 30), (ctypes.c_int32, 2, ctypes.c_uint64, 512 << 20)])

    def test_Error_OfTheCore_IsRaisedWithItsText(self):
        with mock.patch.object(_core, "loaded", lambda: self), self.assertRaisesRegex(RuntimeError, "device 1: it does not fit"):
            _core.set_cap("1:20GiB")


class Asked(unittest.TestCase):
    def test_Variables_ThatAskForWeir(self):
        for name in ("WEIR_VRAM", "WEIR_RAM", "WEIR_TRACE", "WEIR_REQUIRED", "WEIR_VRM"):
            self.assertTrue(_entry_point.asks_for_weir({name: "1"}), name)
            self.assertFalse(_entry_point.asks_for_weir({name: ""}), name)
            self.assertFalse(_entry_point.asks_for_weir({name: "1", "WEIR_DISABLE": "1"}), name)

    def test_EveryOption_ThatIsNotOfTheEmulatedGpu_IsDecided(self):
        """A new option has to be put on one side or the other."""
        listing = subprocess.run([WEIR, "config", "--page"], stdout=subprocess.PIPE, text=True, check=True).stdout
        options = {name for name in re.findall(r"^\| `(WEIR_\w+)`", listing, re.M) if not name.startswith("WEIR_EMULATED_")}
        silent = {name for name in options if not _entry_point.asks_for_weir({name: "1"})}
        self.assertEqual(silent, {"WEIR_GPU", "WEIR_KERNELS", "WEIR_BESIDE_REAL_GPU", "WEIR_LOG", "WEIR_NVTX", "WEIR_STRICT",
                                  "WEIR_DISABLE"})


if __name__ == "__main__":
    unittest.main()
