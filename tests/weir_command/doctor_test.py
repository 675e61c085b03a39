"""`weir doctor` says what a job would meet, with a verdict for each line, and its exit code sums them up."""
import json
import os
import subprocess
import sys

from installed_weir import WeirTestCase

DRIVER = {"LD_LIBRARY_PATH": os.environ["TEST_DRIVER_FOLDER"]}


class DoctorTest(WeirTestCase):
    def doctor(self, code, *arguments, **environment):
        """The findings by subject, of a doctor that ends with this code."""
        done = self.run_weir("doctor", "--json", *arguments, **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["works"], code == 0)
        found = {}
        for finding in report["findings"]:
            self.assertEqual(finding["advice"] == "", finding["verdict"] == "ok", finding)
            found.setdefault(finding["subject"], []).append(finding)
        return found

    def healthy(self, version="2.15.1+cu130", **torch):
        return {**DRIVER, **self.make_torch(version, **torch)}

    def verdicts(self, found, subject):
        return [finding["verdict"] for finding in found[subject]]

    def test_all_well(self):
        found = self.doctor(0, sys.executable, **self.healthy())
        self.assertEqual({verdict["verdict"] for subject, findings in found.items() for verdict in findings
                          if subject != "memlock"}, {"ok"})
        self.assertIn("13.2", found["driver"][0]["text"])
        self.assertIn("Test card, 24.00 GiB", found["gpu"][0]["text"])
        self.assertIn("2.15.1+cu130", found["torch"][0]["text"])
        self.assertIn("every tensor", found["leaving"][0]["text"])
        self.assertIn("CUDA graphs", found["refused"][0]["text"])
        version = self.run_weir("--version").stdout.split()[1]
        self.assertTrue(found["weir"][0]["text"].startswith(f"{version}, with plugins for torch 2.15, in "), found["weir"])

    def test_no_driver(self):
        found = self.doctor(4, sys.executable, **self.make_torch("2.15.1"))
        self.assertEqual(self.verdicts(found, "driver"), ["problem"])
        self.assertIn("--gpu emulated", found["driver"][0]["advice"])
        self.assertNotIn("gpu", found)

    def test_driver_older_than_torch(self):
        found = self.doctor(4, sys.executable, TEST_CUDA="12040", **self.healthy("2.15.0+cu132"))
        self.assertEqual(self.verdicts(found, "driver"), ["ok", "problem"])
        self.assertIn("serves CUDA up to 12.4, and torch 2.15.0+cu132 needs 13.0", found["driver"][1]["text"])
        for torch in ("2.15.0+cu126", "2.15.0"):  # served, and not told
            self.assertEqual(self.verdicts(self.doctor(0, sys.executable, TEST_CUDA="12040", **self.healthy(torch)), "driver"), ["ok"])

    def test_features_of_the_device(self):
        found = self.doctor(0, sys.executable, TEST_CAPABILITY="8.9", **self.healthy())
        self.assertEqual(found["gpu"][0]["text"], "device 0: Test card, 24.00 GiB, sm_89, maps virtual memory")
        found = self.doctor(4, sys.executable, TEST_COMPUTE_MODE="2", **self.healthy())
        self.assertIn("compute mode Prohibited", found["gpu"][0]["text"])

    def test_driver_without_device(self):
        found = self.doctor(4, sys.executable, TEST_DEVICES="0", **self.healthy())
        self.assertIn("error 100", found["driver"][0]["text"])

    def test_two_devices_without_virtual_memory(self):
        found = self.doctor(4, sys.executable, TEST_DEVICES="2", TEST_NO_VMM="1", **self.healthy())
        self.assertEqual(self.verdicts(found, "gpu"), ["problem"] * 2)
        self.assertIn("virtual memory", found["gpu"][1]["text"])

    def test_emulated_gpu_that_is_no_driver(self):
        found = self.doctor(4, "--gpu", "emulated", sys.executable, **self.healthy())
        self.assertIn("not an NVIDIA driver", found["driver"][0]["text"])

    def test_part_missing(self):
        (self.folder / "lib" / "libweir_core.so").unlink()
        found = self.doctor(4, sys.executable, **self.healthy())
        self.assertIn("libweir_core.so", found["parts"][0]["text"])

    def test_torch_without_plugin_and_cpu_only(self):
        for version, cuda in (("2.13.0+cu130", True), ("2.15.0+cpu", False)):
            found = self.doctor(4, sys.executable, **self.healthy(version, cuda=cuda))
            self.assertEqual(self.verdicts(found, "torch"), ["problem"])
            self.assertIn(version, found["torch"][0]["text"])
            self.assertIn("2.15", found["torch"][0]["advice"])
            self.assertNotIn("leaving", found)

    def test_torch_211_says_what_may_leave(self):
        (self.folder / "lib" / "libweir_torch_2_11.so").touch()
        found = self.doctor(0, sys.executable, **self.healthy("2.11.0+cu130"))
        self.assertEqual(self.verdicts(found, "leaving"), ["warning"])
        self.assertIn("aten", found["leaving"][0]["text"])

    def test_python_without_torch(self):
        script = self.folder / "python3"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
        script.chmod(0o755)
        self.assertEqual(self.verdicts(self.doctor(4, script, **DRIVER), "torch"), ["problem"])

    def test_no_python(self):
        found = self.doctor(0, PATH=str(self.folder / "bin"), **DRIVER)
        self.assertEqual(self.verdicts(found, "python"), ["warning"])

    def test_python_that_does_not_exist(self):
        self.assert_refused(self.run_weir("doctor", "no-such-python"), 127, "no-such-python")

    def test_options(self):
        found = self.doctor(2, sys.executable, WEIR_VRAM="24Gb", WEIR_RAM="1GiB", WEIR_VRAN="1", **self.healthy())
        self.assertEqual(self.verdicts(found, "options"), ["warning", "problem", "ok"])
        texts = [finding["text"] for finding in found["options"]]
        for text, part in zip(texts, ("did you mean WEIR_VRAM?", "24Gb", "WEIR_RAM=1GiB")):
            self.assertIn(part, text)

    def test_ram(self):
        found = self.doctor(0, sys.executable, WEIR_RAM="1000TiB", **self.healthy())
        self.assertEqual(self.verdicts(found, "ram"), ["warning"])
        found = self.doctor(0, sys.executable, WEIR_RAM="1MiB", **self.healthy())
        self.assertEqual(self.verdicts(found, "ram"), ["ok"])
        self.assertIn("1.00 MiB (WEIR_RAM)", found["ram"][0]["text"])
        found = self.doctor(0, sys.executable, WEIR_RAM="1MiB/node", **self.healthy())
        self.assertIn("1.00 MiB (WEIR_RAM, of all Weir processes of this user)", found["ram"][0]["text"])

    def test_caps(self):
        found = self.doctor(0, sys.executable, TEST_DEVICES="2", WEIR_VRAM="0:20GiB,1:200GiB,7:1GiB", **self.healthy())
        self.assertEqual([(finding["verdict"], finding["text"]) for finding in found["vram"]], [
            ("ok", "device 0: a cap of 20.00 GiB (WEIR_VRAM)"),
            ("warning", "WEIR_VRAM=200.00 GiB is more than device 1 has; the cap is 24.00 GiB"),
            ("warning", "WEIR_VRAM names device 7, and there are 2")])
        self.assertNotIn("vram", self.doctor(0, sys.executable, WEIR_VRAM="80%", **self.healthy()))

    def test_address_space(self):
        limited = ["sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"', str(self.weir)]
        if subprocess.run([*limited, "--version"], env=self.environment(), capture_output=True).returncode != 0:
            self.skipTest("this build of the command needs more addresses than that")
        done = subprocess.run([*limited, "doctor", "--json", sys.executable], env=self.environment(**self.healthy()),
                              capture_output=True, text=True)
        found, = [finding for finding in json.loads(done.stdout)["findings"] if finding["subject"] == "addresses"]
        self.assertEqual((found["verdict"], found["text"]), ("warning", "limited to 3.81 GiB (ulimit -v)"))

    def test_settings_of_torchs_allocator(self):
        found = self.doctor(2, sys.executable, PYTORCH_ALLOC_CONF="backend:cudaMallocAsync", **self.healthy())
        self.assertEqual(self.verdicts(found, "allocator"), ["problem"])
        settings = "expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:4,per_process_memory_fraction:0.5"
        found = self.doctor(0, sys.executable, PYTORCH_CUDA_ALLOC_CONF=settings, **self.healthy())
        self.assertEqual(self.verdicts(found, "allocator"), ["warning", "ok"])
        self.assertIn("max_split_size_mb, roundup_power2_divisions have no effect", found["allocator"][0]["text"])
        self.assertIn("per_process_memory_fraction:0.5 of the card is a cap too", found["allocator"][1]["text"])

    def test_stale_settings(self):
        stale = {"WEIR_EMULATED_SHARED": "ab", "WEIR_WATCH_NATIVE": "1", "WEIR_EMULATED_SEED": "3", "WEIR_KERNELS": "none"}
        found = self.doctor(0, sys.executable, **stale, **self.healthy())
        self.assertEqual(self.verdicts(found, "stale"), ["warning"] * 4)
        advice = " ".join(finding["advice"] for finding in found["stale"])
        for name in stale:
            self.assertIn(f"unset {name}", advice)
        # In a job of `weir run` they are in use.
        program = "import os, subprocess; subprocess.run([os.environ['COMMAND'], 'doctor', '--json', 'true'])"
        done = self.run_python(("--gpu", "emulated"), program, COMMAND=str(self.weir))
        self.assertIn('"findings"', done.stdout, done.stderr)
        self.assertNotIn('"stale"', done.stdout)

    def test_text(self):
        done = self.run_weir("doctor", sys.executable, WEIR_RAM="1MiB", **self.make_torch("2.15.0"))
        self.assertEqual(done.returncode, 4)
        lines = done.stdout.splitlines()
        self.assertIn("ok       options    WEIR_RAM=1MiB", lines)
        at = [line.split()[:2] for line in lines].index(["problem", "driver"])
        self.assertEqual(lines[at + 1].split()[0], "->")

    def test_file(self):
        out = self.folder / "report.json"
        done = self.run_weir("doctor", "--json", "-o", out, sys.executable, **self.healthy())
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertTrue(json.loads(out.read_text())["works"])
