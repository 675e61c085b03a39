"""tools/bundle: BUILD_FOLDER. What is in it, what it needs of the other machine, and that it runs where it is put."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu_check"))
import bundle  # noqa: E402
from elf import Elf  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
NOTHING = {"PATH": "/usr/bin:/bin"}  # no LD_LIBRARY_PATH


def output(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, env=NOTHING, **more).stdout


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        # Made in one place and moved to another.
        cls.bundle = bundle.make(BUILD, cls.scratch / "made").rename(cls.scratch / "moved")

    def test_no_file_needs_a_newer_system(self):
        """Symbol versions by binutils, so that elf.py is not its own judge."""
        newest = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29)}
        files = bundle.elf_files(self.bundle)
        self.assertGreater(len(files), 10)
        for path in files:
            text = output("readelf", "-V", "-W", path)
            needs = set(re.findall(r"Name: (\S+)", text[text.find(".gnu.version_r'"):])) if ".gnu.version_r'" in text else set()
            self.assertEqual(needs, {version for _, version in Elf(path).versions}, path.name)
            for version in needs:
                kind, _, number = version.partition("_")
                if kind in newest:
                    self.assertLessEqual(tuple(map(int, number.split("."))), newest[kind], f"{path.name}: {version}")

    def test_libraries_are_found_inside(self):
        for name in ("bin/weir", "bin/weir_conformance", "lib/libweir_core.so", "lib/emulated_gpu/libcuda.so.1"):
            text = output("ldd", self.bundle / name)
            self.assertNotIn("not found", text)
            for library, place in re.findall(r"(\S+) => (\S+)", text):
                inside = place.startswith(str(self.bundle))
                self.assertEqual(inside, bundle.THEIRS.fullmatch(library) is None, f"{name}: {library} => {place}")

    def test_nothing_of_the_compiler_is_inside(self):
        self.assertEqual([path.name for path in self.bundle.rglob("*") if re.match(r"lib(stdc|gcc)", path.name)], [])

    def test_no_path_of_this_machine_is_inside(self):
        for path in bundle.elf_files(self.bundle):
            self.assertFalse(str(ROOT).encode() in path.read_bytes(), path.name)

    def test_size(self):
        size = sum(path.stat().st_size for path in self.bundle.rglob("*") if path.is_file())
        self.assertLess(size, 60 << 20)

    def test_every_plugin_that_is_built_is_inside(self):
        built = {path.name for path in (BUILD / "lib").glob("libweir_torch_*.so")}
        self.assertEqual({path.name for path in (self.bundle / "lib").glob("libweir_torch_*.so")}, built)
        self.assertTrue(built)

    def test_command_runs(self):
        self.assertRegex(output(self.bundle / "weir", "--version"), r"\d+\.\d+\.\d+")
        self.assertEqual(output(self.bundle / "weir", "path").strip(), str(self.bundle / "lib" / "libweir_preload.so"))
        self.assertIn("WEIR_VRAM", output(self.bundle / "weir", "config"))

    def test_check_runs(self):
        text = output(self.bundle / "gpu_check", "--gpu", "emulated", "--stages", "conformance", "--patience", "4", "--json",
                      self.scratch / "figures.json")
        self.assertIn("conformance: passed", text)

    def test_probe_is_one_file_that_a_plain_compiler_builds(self):
        source = self.bundle / "tools" / "gpu_check" / "probe.cc"
        self.assertEqual(re.findall(r'#include "', source.read_text()), [])
        alone = self.scratch / "alone"
        alone.mkdir()
        shutil.copy(source, alone / "probe.cc")
        output("g++", "-std=c++17", "-o", alone / "probe", alone / "probe.cc", "-ldl", "-lpthread")
        kernels = output(alone / "probe", "--ptx")
        self.assertEqual(kernels, output(self.bundle / "bin" / "weir_gpu_probe", "--ptx"))

    def test_place_that_is_taken_is_refused(self):
        with self.assertRaisesRegex(bundle.Refused, "is there already"):
            bundle.make(BUILD, self.bundle)

    def test_part_that_is_not_built_is_refused_by_name(self):
        with self.assertRaisesRegex(bundle.Refused, "weir is not built"):
            bundle.make(self.scratch, self.scratch / "none")
        self.assertFalse((self.scratch / "none").exists())


class LimitsTest(unittest.TestCase):
    def test_versions_beyond_the_limits_are_told(self):
        for version in ("GLIBC_2.35", "GLIBC_2.100", "GLIBCXX_3.4.30", "CXXABI_1.3.14", "GLIBC_ABI_DT_RELR", "GLIBC_PRIVATE"):
            self.assertEqual(bundle.too_new([("libc.so.6", version)]), [version])
        for version in ("GLIBC_2.34", "GLIBC_2.4", "GLIBCXX_3.4.29", "GLIBCXX_3.4", "CXXABI_1.3.13", "GCC_3.0"):
            self.assertEqual(bundle.too_new([("libstdc++.so.6", version)]), [])

    def test_library_that_waits_as_new_headers_do_is_told(self):
        """std::condition_variable::wait is what brings GLIBCXX_3.4.30; tools/emulated_gpu/symbol_versions.h binds the older one."""
        source = ("#include <condition_variable>\nvoid Wait(std::condition_variable& c, std::unique_lock<std::mutex>& l) "
                  "{ c.wait(l); }\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.cc")
            path.write_text(source)
            library = pathlib.Path(folder, "liba.so")
            for options, told in (([], ["GLIBCXX_3.4.30"]), (["-include", str(ROOT / "tools" / "emulated_gpu" / "symbol_versions.h")], [])):
                output("g++", "-shared", "-fPIC", *options, "-o", library, path)
                self.assertEqual(bundle.too_new(Elf(library).versions), told)

    def test_what_is_no_elf_file_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no 64-bit"):
            Elf(__file__)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
