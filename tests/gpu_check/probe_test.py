"""The driver probe: PROBE EMULATOR BROKEN_DRIVER. It runs to its end on the emulated GPU, and outlives a bad driver."""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest

PROBE, EMULATOR, BROKEN = sys.argv[1:4]
SOURCE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu_check"
sys.path.insert(0, str(SOURCE))
import card_profile  # noqa: E402

STEPS = {"device", "alias copies", "alias kernels", "vmm cost", "vmm stalls", "mapper", "capture", "copies", "calls", "pinned",
         "host backed", "export", "reset", "exit"}
NEED_KERNELS = {"alias kernels", "vmm stalls", "mapper"}


class ProbeTest(unittest.TestCase):
    def probe(self, *arguments, program=PROBE, **environment):
        """Exit code, standard output, and the file of figures."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "figures.json")
            done = subprocess.run([program, "--json", str(path), *arguments], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env={**os.environ, **environment})
            return done.returncode, done.stdout, json.loads(path.read_text())

    def emulated(self, *arguments, **more):
        return self.probe("--driver", EMULATOR, *arguments, WEIR_GPU="emulated:h200", **more)

    def test_emulated_gpu_runs_to_the_end(self):
        code, output, figures = self.emulated()
        self.assertEqual(code, 0, output)
        self.assertEqual(set(figures), STEPS)
        for name, step in figures.items():
            self.assertIn(f"{name:14} {step['status']:9}", output)
            self.assertIn(step["status"], ("ok", "skipped"), name)
        for name in NEED_KERNELS:
            self.assertEqual(figures[name]["why"], "needs kernels, and this device runs none")
        device = figures["device"]["figures"]
        self.assertEqual(device["vmm"]["value"], 1)
        self.assertEqual(device["info_total"], {"value": device["device_total"]["value"], "unit": "B"})
        aliases = figures["alias copies"]["figures"]
        self.assertEqual([figure["value"] for figure in aliases.values()], [0, 0])
        for size in (2, 4, 8, 16, 32, 64, 128):
            for call in ("create", "map", "access", "unmap", "release", "batched access", "batched unmap"):
                figure = figures["vmm cost"]["figures"][f"{size} MiB {call}"]
                self.assertGreaterEqual(figure["value"], 0)
                self.assertEqual(figure["unit"], "us")

    def test_profile_of_the_card_is_one_that_the_emulator_takes(self):
        figures = self.emulated()[2]
        text = card_profile.of_probe(figures)
        self.assertRegex(text, r"(?m)^base h200$")
        for key in card_profile.MEASURED:
            if key not in ("launch_us", "event_us", "copy_submit_us") and not key.startswith("vmm_"):
                self.assertRegex(text, rf"(?m)^{key} [0-9.]+  # gpu_check: ")
        self.assertRegex(text, r"(?m)^vram_mib 143771 ")
        self.assertRegex(text, r"(?m)^compute_minor 0 ")
        self.assertNotIn("launch_us", text)  # no kernels here
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "card.profile")
            path.write_text(text)
            told = ctypes.create_string_buffer(1000)
            check = ctypes.CDLL(EMULATOR).weir_emulated_check_profile
            self.assertEqual(check(str(path).encode(), told, 1000), 0, told.value)
            path.write_text(text + "h2d_gbps fast\n")
            self.assertEqual(check(str(path).encode(), told, 1000), 1)
            self.assertIn(b"card.profile:", told.value)

    def test_profile_takes_the_base_of_the_nearest_chip(self):
        for capability, memory, base in ((90, 80 << 30, "h100"), (90, 141 << 30, "h200"), (100, 180 << 30, "h200"),
                                         (80, 40 << 30, "a100-80g"), (75, 16 << 30, "a100-80g"), (89, 8 << 30, "rtx4090")):
            self.assertEqual(card_profile.base_of(capability, memory), base)
        with self.assertRaisesRegex(ValueError, "no card"):
            card_profile.of_probe({"device": {"figures": {}, "lines": []}})

    def test_launches_that_do_nothing_are_not_taken_for_kernels(self):
        figures = self.emulated("--only", "alias kernels", WEIR_KERNELS="none")[2]
        self.assertEqual(figures["alias kernels"]["status"], "skipped")

    def test_step_that_hangs_is_a_line(self):
        code, output, figures = self.probe("--driver", BROKEN, "--limit", "1.5", WEIR_TEST_DRIVER="hang")
        self.assertEqual(code, 1)
        self.assertEqual({step["status"] for step in figures.values()}, {"timed out"})
        self.assertEqual(set(figures), STEPS)
        self.assertIn("timed out", output)

    def test_step_that_dies_is_a_line(self):
        code, _, figures = self.probe("--driver", BROKEN, WEIR_TEST_DRIVER="die")
        self.assertEqual(code, 1)
        self.assertEqual({step["status"] for step in figures.values()}, {"killed"})
        self.assertEqual({step["why"] for step in figures.values()}, {"by signal 6"})

    def test_driver_without_a_device_is_told_by_each_step(self):
        code, _, figures = self.probe("--driver", BROKEN, WEIR_TEST_DRIVER="100")
        self.assertEqual(code, 1)
        self.assertEqual({step["why"] for step in figures.values()}, {"Init(0): error 100"})

    def test_no_driver(self):
        code, _, figures = self.probe("--driver", "libno_such_driver.so")
        self.assertEqual(code, 1)
        self.assertTrue(all("libno_such_driver.so" in step["why"] for step in figures.values()))

    def test_kernels_assemble(self):
        folder = pathlib.Path(sysconfig.get_paths()["purelib"], "triton", "backends", "nvidia", "bin")
        if not (folder / "ptxas").exists():
            self.skipTest("no ptxas: this torch came without Triton")
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch, "kernels.ptx")
            source.write_bytes(subprocess.run([PROBE, "--ptx"], stdout=subprocess.PIPE, check=True).stdout)
            for card in ("sm_80", "sm_90"):
                subprocess.run([str(folder / "ptxas"), "--gpu-name", card, "-o", os.devnull, str(source)], check=True)

    def test_wrong_usage(self):
        for arguments in (["--limit", "0"], ["--json"], ["--other", "1"]):
            done = subprocess.run([PROBE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, b""))

    def test_builds_alone_with_a_plain_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "probe")
            subprocess.run(["g++", "-std=c++17", "-o", str(program), str(SOURCE / "probe.cc"), "-ldl", "-lpthread"], check=True)
            code, output, figures = self.probe("--driver", EMULATOR, "--only", "device", program=str(program),
                                               WEIR_GPU="emulated:h200")
            self.assertEqual((code, set(figures)), (0, {"device"}), output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
