"""The build takes CUDA's headers from the wheels: a CUDA toolkit of the machine, or the lack of one, changes nothing."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAP = "#error \"the machine's CUDA toolkit was taken\"\n"


class ToolkitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def include_folders(self, environment, *flags):
        """Every include folder of every compile command of a fresh configuration."""
        done = subprocess.run(["cmake", "-S", str(ROOT), "-B", str(self.folder / "build"), "-G", "Ninja",
                               f"-DWEIR_PYTHON={os.environ['TEST_PYTHON']}", *flags], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        folders = set()
        for words in self.compile_commands().values():
            folders |= {following for word, following in zip(words, words[1:]) if word == "-isystem"}
            folders |= {word[2:] for word in words if word.startswith("-I")}
        return folders

    def compile_commands(self):
        """The words of each compile command by source file."""
        commands = json.loads((self.folder / "build" / "compile_commands.json").read_text())
        return {command["file"]: command["command"].split() for command in commands}

    def headers_of(self, source):
        """Every file that is read to compile a source file."""
        words = self.compile_commands()[str(ROOT / source)]
        words = [word for word in words[:words.index("-o")] if word != "ccache"]
        rule = subprocess.run([*words, "-M", str(ROOT / source)], cwd=self.folder / "build", stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        return rule.replace("\\\n", " ").split(":", 1)[1].split()

    def environment(self, **additions):
        clean = {name: text for name, text in os.environ.items() if "CUDA" not in name and name != "CPATH"}
        clean["PATH"] = ":".join(part for part in clean["PATH"].split(":") if "cuda" not in part)
        return {**clean, **additions}

    def assert_headers_of_the_wheels(self, folders):
        holding = {folder for folder in folders if (pathlib.Path(folder) / "cuda.h").exists()}
        self.assertEqual(holding, set(os.environ["TEST_CUDA_INCLUDES"].split(":")))

    def test_toolkit_hidden(self):
        hidden = "/usr/local/cuda;/opt/cuda;/usr/lib/cuda"
        self.assert_headers_of_the_wheels(self.include_folders(self.environment(), f"-DCMAKE_IGNORE_PREFIX_PATH={hidden}"))

    def test_another_toolkit_in_the_way(self):
        toolkit = self.folder / "cuda-9.0"
        (toolkit / "include").mkdir(parents=True)
        (toolkit / "bin").mkdir()
        for header in ("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "nvToolsExt.h"):
            (toolkit / "include" / header).write_text(TRAP)
        nvcc = toolkit / "bin" / "nvcc"
        nvcc.write_text("#!/bin/sh\nexit 1\n")
        nvcc.chmod(0o755)
        environment = self.environment()
        folders = self.include_folders({**environment, "CUDA_HOME": str(toolkit), "CUDA_PATH": str(toolkit),
                                        "CUDAToolkit_ROOT": str(toolkit),
                                        "PATH": f"{toolkit}/bin:{environment['PATH']}"})
        self.assert_headers_of_the_wheels(folders)

    def test_headers_of_torch_find_all_of_cuda_in_the_wheels(self):
        """The compiler looks into /usr/local/include by itself, where a toolkit may have put its headers."""
        self.include_folders(self.environment())
        headers = self.headers_of("pytorch_plugin/allocator_adapter.cc")
        self.assertTrue(any(header.endswith("/cuda_runtime.h") for header in headers))
        self.assertEqual([header for header in headers if header.startswith(("/usr/local", "/opt"))], [])
