"""tools/gpu_check from a bundle, on the emulated GPU and shortened: BUILD_FOLDER. Digests of operators on the CPU."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu_check"
sys.path.insert(0, str(FOLDER))
import bundle  # noqa: E402
import demo_stage  # noqa: E402

JOB = """import sys, torch
x = torch.arange(12.0, requires_grad=True)
y = (x * 2).sin() if sys.argv[1] == "sin" else (x * 2).cos()
y.sum().backward()
"""


class EmulatedTest(unittest.TestCase):
    def test_all_stages_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "figures.json")
            check = bundle.make(pathlib.Path(sys.argv[1]), pathlib.Path(folder, "bundle")) / "gpu_check"
            done = subprocess.run([str(check), "--gpu", "emulated", "--steps", "2",
                                   "--stages", "probe,conformance,deterministic", "--patience", "4", "--json", str(path)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PYTHON": sys.executable})
            self.assertEqual(done.returncode, 0, done.stdout)
            stages = json.loads(path.read_text())["stages"]
        self.assertEqual(list(stages), ["probe", "conformance", "deterministic"])
        self.assertTrue(all(stage["passed"] for stage in stages.values()))
        self.assertEqual(stages["conformance"]["figures"]["failed"], {})
        demo = stages["deterministic"]["figures"]
        self.assertTrue(demo["uncapped_runs_agree"] and demo["weir_agrees"])
        self.assertEqual(demo["cap_bytes"], demo["uncapped"]["torch_peak_bytes"] // 3)
        self.assertEqual(demo["capped 1/3"]["losses"], demo["uncapped"]["losses"])

    def test_digests_name_the_first_different_operator(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "job.py")
            script.write_text(JOB)
            texts = []
            for function in ("sin", "sin", "cos"):
                digests = pathlib.Path(folder, "digests")
                subprocess.run([sys.executable, str(FOLDER / "observed_job.py"), "--deterministic", "--digests", str(digests),
                                str(script), function], check=True)
                texts.append(digests.read_text())
        self.assertEqual(demo_stage.first_different_operator(texts[0], texts[1]), "")
        self.assertRegex(demo_stage.first_different_operator(texts[0], texts[2]),
                         r"operator \d+ is aten\.sin\.default and aten\.cos\.default")
        self.assertIn("aten.mul.Tensor", texts[0])
        self.assertGreater(len(texts[0].splitlines()), 5)  # the backward pass is seen too


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
