"""A torch whose allocator interface is another than the table's does not build unnoticed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = pathlib.Path(os.environ["WEIR_TEST_TORCH_INCLUDE"])
HEADERS = ("c10/core/Allocator.h", "c10/core/CachingDeviceAllocator.h", "c10/cuda/CUDACachingAllocator.h")
BEFORE = "  virtual std::string name() = 0;"


def check(include, table, *more):
    return subprocess.run([sys.executable, ROOT / "tools" / "allocator_methods.py", include, table, *more],
                          capture_output=True, text=True)


class AllocatorMethods(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.include = pathlib.Path(folder.name)
        for header in HEADERS:
            (self.include / header).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(INCLUDE / header, self.include / header)
        self.table = self.include / "table.txt"
        self.assertEqual(check(self.include, self.table, "--write").returncode, 0)

    def change(self, before, after):
        header = self.include / HEADERS[-1]
        text = header.read_text()
        self.assertIn(before, text)
        header.write_text(text.replace(before, after))
        return check(self.include, self.table)

    def test_SameHeaders_NotAWord(self):
        done = check(self.include, self.table)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_NewFunctionWithADefault_IsNamed(self):
        done = self.change(BEFORE, "  virtual void freeLater(void* ptr, int flags = int{2}) { (void)ptr; }\n" + BEFORE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("new or changed: CUDAAllocator has-default void freeLater(void*ptr,int flags=int{2})", done.stderr)

    def test_PureFunctionGetsADefault_IsNamed(self):
        done = self.change(BEFORE, "  virtual std::string name() { return {}; }")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has-default std::string name()", done.stderr)
        self.assertIn("gone or changed: CUDAAllocator pure std::string name()", done.stderr)

    def test_EveryMethod_HasARowInTheParityPage(self):  # C22
        page = (ROOT / "docs" / "parity.md").read_text()
        tables = list((ROOT / "pytorch_plugin" / "allocator_methods").glob("*.txt"))
        self.assertGreaterEqual(len(tables), 2)
        for line in {line for table in tables for line in table.read_text().splitlines()}:
            method = re.search(r"(\w+)\(", line).group(1)
            with self.subTest(method):
                self.assertIn(f"`{method}`", page)

    def test_InAComment_IsNoFunction(self):
        self.assertEqual(self.change(BEFORE, "  // virtual void never() = 0;\n" + BEFORE).returncode, 0)


if __name__ == "__main__":
    unittest.main()
