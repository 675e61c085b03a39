"""Each check of tools/tidy.py finds what it looks for, and nothing in a tree that is in order."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402


class TidyTest(unittest.TestCase):
    def problems(self, check, files, ratchet=None):
        """What a check says of a repository with these files."""
        with tempfile.TemporaryDirectory() as folder:
            files = {**files, tidy.RATCHET: json.dumps(ratchet or {}), ".clang-format": (ROOT / ".clang-format").read_text()}
            for path, text in files.items():
                target = pathlib.Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            subprocess.run(["git", "init", "-q", folder], check=True)
            subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
            return list(tidy.CHECKS[check](tidy.Tree(folder)))

    def assert_finds(self, check, files, *parts, ratchet=None):
        problems = self.problems(check, files, ratchet)
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])

    def test_layers_include_downwards_only(self):
        up = {"allocator": "offload/pager.h", "allocator/base": "allocator/extent.h", "policies": "allocator/extent.h",
              "offload": "pytorch_plugin/core_abi.h", "pytorch_plugin": "tools/weir_command/places.h",
              "tools/weir_command": "tests/fakes/driver.h"}
        for folder, header in up.items():
            self.assert_finds("layers", {f"{folder}/a.cc": f'#include "{header}"\n'}, f"{folder}/a.cc:1", header)

    def test_layers_downwards_are_allowed(self):
        files = {"policies/a.cc": '#include "allocator/base/units.h"\n', "offload/a.h": '#include "policies/policy.h"\n',
                 "tests/offload/a_test.cc": '#include "offload/pager.h"\n', "allocator/cuda/a.cc": "#include <vector>\n"}
        self.assertEqual(self.problems("layers", files), [])

    def test_file_outside_the_layers(self):
        self.assert_finds("layers", {"extras/a.cc": ""}, "extras/a.cc")

    def test_banned_includes(self):
        for path, header in (("allocator/extent.cc", "cuda.h"), ("offload/a.cc", "torch/torch.h"),
                             ("offload/a.h", "c10/core/Device.h"), ("offload/pager.cc", "nvtx3/nvToolsExt.h"),
                             ("allocator/cuda/a.cc", "cuda_runtime_api.h"), ("policies/a.cc", "nlohmann/json.hpp")):
            self.assert_finds("banned_includes", {path: f"// x\n#include <{header}>\n"}, f"{path}:2", header)
        self.assertEqual(self.problems("banned_includes", {"allocator/cuda/driver.h": '#include "cuda.h"\n'}), [])

    def test_getenv(self):
        self.assert_finds("getenv", {"offload/a.cc": 'int x;\nauto y = getenv("X");\n'}, "offload/a.cc:2")
        self.assert_finds("getenv", {"offload/a.cc": 'f("\\"", environ);\n'}, "offload/a.cc:1")
        for path, text in (("allocator/base/options.cc", 'auto y = getenv("X");\n'), ("offload/a.cc", 'f("/proc/self/environ");\n')):
            self.assertEqual(self.problems("getenv", {path: text}), [])

    def test_size_of_a_file(self):
        self.assert_finds("sizes", {"offload/a.h": "\n" * 501}, "offload/a.h", "501")
        self.assertEqual(self.problems("sizes", {"offload/a.h": "\n" * 500}), [])

    def test_size_of_a_function(self):
        body = "  g(\"}\");  // }\n" * 59
        long_one = f"namespace n {{\nclass C {{\n  int x = 0;\n}};\nint f(int a) {{\n{body}}}\n}}\n"
        self.assert_finds("sizes", {"offload/a.cc": long_one}, "offload/a.cc:f", "61 lines")
        self.assertEqual(self.problems("sizes", {"offload/a.cc": long_one.replace(body, body[:-len(body) // 59])}), [])

    def test_size_of_a_python_function(self):
        self.assert_finds("sizes", {"tools/a.py": "def f():\n" + "    g()\n" * 60}, "tools/a.py:f", "61 lines")

    def test_ratchet_only_shrinks(self):
        files = {"offload/a.h": "\n" * 510}
        self.assertEqual(self.problems("sizes", files, {"offload/a.h": 510}), [])
        self.assert_finds("sizes", files, "510", ratchet={"offload/a.h": 509})
        self.assert_finds("sizes", files, "lower the entry", ratchet={"offload/a.h": 511})
        self.assert_finds("sizes", {}, "remove the entry", ratchet={"offload/a.h": 511})

    def test_names(self):
        for name in ("frame_manager.h", "helpers.cc", "string_util.h", "data.py"):
            self.assert_finds("names", {f"offload/{name}": ""}, name)
        self.assertEqual(self.problems("names", {"offload/pager.h": "", "tests/data_loader.py": ""}), [])

    def test_readmes(self):
        self.assert_finds("readmes", {"offload/a.cc": ""}, "offload")
        self.assert_finds("readmes", {"allocator/README.md": "", "allocator/cuda/a.cc": ""}, "allocator/cuda")
        self.assert_finds("readmes", {"offload/a.cc": "", "offload/README.md": "x\n" * 61}, "61 lines")
        self.assertEqual(self.problems("readmes", {"offload/a.cc": "", "offload/README.md": "x\n" * 60}), [])

    def test_local_paths(self):
        for text in ("/ro" + "ot/x", "/wor" + "k/main", "https://py" + "pi.org/simple"):
            self.assert_finds("local_paths", {"docs/a.md": f"see {text}\n"}, "docs/a.md:1")

    def test_format(self):
        self.assert_finds("format", {"offload/a.cc": "int   x ;\n", "offload/b.cc": "int x;\n"}, "offload/a.cc")

    def test_untracked_files_are_not_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "init", "-q", folder], check=True)
            (pathlib.Path(folder) / "stray.cc").write_text("x")
            self.assertEqual(tidy.Tree(folder).paths, [])
