"""The commands of docs/examples/README.md, as they stand there: on the emulated GPU the losses are those without a cap, and without Weir.

TEST_WEIR: the command that stands for tools/weir; the Python is the one that runs the test.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples"
README = (FOLDER / "README.md").read_text()
COMMANDS = [line.split("#")[0].strip() for line in re.findall(r"^    (.*)$", README, re.M)]


def run(command: str, **variables) -> subprocess.CompletedProcess:
    words = shlex.split(command)
    words = [{"tools/weir": os.environ["TEST_WEIR"], ".venv-programs/bin/python": sys.executable}.get(word, word) for word in words]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("WEIR_")}
    return subprocess.run(words, cwd=ROOT, env={**environment, **variables}, stdin=subprocess.DEVNULL, capture_output=True, text=True)


class ExamplesReadme(unittest.TestCase):
    def test_Table_Scripts_AreThoseOfTheFolder(self):
        named = re.findall(r"^\| \[`(\w+\.py)`\]\(\1\)", README, re.M)
        self.assertEqual(sorted(named), sorted(path.name for path in FOLDER.glob("*.py")))

    def test_Commands_Emulated_LossesAreTheSameWithTheCapAndWithoutWeir(self):
        uncapped, capped = [command for command in COMMANDS if "--gpu emulated" in command]
        self.assertIn("--vram", capped)
        runs = [run(uncapped, WEIR_DISABLE="1"), run(capped)]
        for done in runs:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(" reports=0", done.stderr)
        self.assertGreaterEqual(len(re.findall(r"^step \d+: loss \d", runs[0].stdout, re.M)), 3, runs[0].stdout)
        self.assertEqual(runs[1].stdout, runs[0].stdout)
        reached = [re.search("use has reached the cap of 96.00 MiB; tensors now move to RAM", done.stderr) is not None for done in runs]
        self.assertEqual(reached, [False, True])

    def test_Commands_ForACard_AreTheSameJobUnderTheSameCap(self):
        """Not run here: the variable and `weir run` are tests of their own (tests/packaging, tests/weir_command)."""
        cap = re.search(r"--vram (\S+)", [command for command in COMMANDS if "--gpu emulated" in command][-1])[1]
        job = "python docs/examples/plain_loop.py"
        self.assertEqual([command for command in COMMANDS if ".venv" not in command],
                         [f"WEIR_VRAM={cap} {job}", f"weir run --vram {cap} -- {job}"])


if __name__ == "__main__":
    unittest.main()
