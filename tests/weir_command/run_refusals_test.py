"""Bad input to `weir run`: one clear line, the exit code, nothing started."""
import os

from installed_weir import EMULATED, WeirTestCase


class RefusedTest(WeirTestCase):
    def refused(self, flags, code, *parts, **environment):
        done = self.run_weir("run", *flags, "--", "touch", self.marker, **environment)
        self.assert_refused(done, code, *parts)

    def test_job_with_good_flags_starts(self):
        """What the other tests rely on: without the bad input the marker is made."""
        self.assertEqual(self.run_weir("run", *EMULATED, "--", "touch", self.marker).returncode, 0)
        self.assertTrue(self.marker.exists())

    def test_vram_not_a_size(self):
        for text in ("24Gb", "-1", "", "24 GiB", "lots", "1e9", "0", "24", "101%", "0%", "0:1GiB,0:2GiB", "1GiB,2GiB"):
            quoted = "" if text == "" or "," in text else f'"{text}"'  # of a list, the bad entry is quoted
            self.refused([*EMULATED, f"--vram={text}"], 2, "--vram", quoted)

    def test_vram_as_two_words(self):
        self.refused([*EMULATED, "--vram", "-1"], 2, "--vram", '"-1"', "24GiB")
        self.refused([*EMULATED, "--vram", ""], 2, "--vram", '""', "24GiB")

    def test_other_options(self):
        for flag, text, part in (("--ram", "8Gb", "24GiB"), ("--ram", "50%", "auto"), ("--policy", "fifo", "lru"),
                                 ("--kernels", "gpu", "cpu, none"), ("--log", "loud", "debug"), ("--gpu", "fake", "emulated"),
                                 ("--gpu", "emulated:v100", "h200"), ("--emulated-vram", "1", "2MiB"),
                                 ("--reports", "shout", "abort, log, count")):
            self.refused([*EMULATED, flag, text], 2, flag, f'"{text}"', part)

    def test_same_values_in_the_environment(self):
        for name, text in (("WEIR_VRAM", "24Gb"), ("WEIR_RAM", "-1"), ("WEIR_POLICY", "fifo"), ("WEIR_LOG", "loud"),
                           ("WEIR_NVTX", "2"), ("WEIR_STRICT", "yes"), ("WEIR_DISABLE", "maybe")):
            self.refused(EMULATED, 2, name, f'"{text}"', **{name: text})

    def test_unknown_names(self):
        self.refused(EMULATED, 2, "WEIR_VRAN", "did you mean WEIR_VRAM?", WEIR_VRAN="1GiB")
        self.refused(EMULATED, 2, "WEIR_SOMETHING_ELSE", "weir config", WEIR_SOMETHING_ELSE="1")

    def test_unknown_flag(self):
        self.refused([*EMULATED, "--vrm=1GiB"], 2, "--vrm")

    def test_flag_without_value(self):
        self.assert_refused(self.run_weir("run", "--vram"), 2, "--vram", "value")

    def test_no_command(self):
        for arguments in (["run"], ["run", *EMULATED], ["run", *EMULATED, "--"]):
            self.assert_refused(self.run_weir(*arguments), 2, "no command")

    def test_emulated_only_flags_with_a_real_gpu(self):
        self.refused(["--kernels", "none"], 2, "--kernels", "--gpu emulated")
        self.refused(["--emulated-vram", "1GiB"], 2, "--emulated-vram", "--gpu emulated")
        self.refused(["--faults", "seed:1"], 2, "--faults", "--gpu emulated")
        self.refused(["--timing"], 2, "--timing", "--gpu emulated")

    def test_emulated_gpu_beside_a_real_driver_has_to_be_meant(self):
        here = {"WEIR_EMULATED_REAL_DRIVER": str(self.weir)}  # a file that exists
        self.refused(EMULATED, 2, "--gpu emulated", str(self.weir), "--beside-real-gpu", **here)
        self.refused([], 2, "--gpu emulated", "--beside-real-gpu", WEIR_GPU="emulated:h100", **here)
        for flags, more in ((["--beside-real-gpu"], {}), ([], {"WEIR_BESIDE_REAL_GPU": "1"})):
            done = self.run_weir("run", *EMULATED, *flags, "--", "printenv", "WEIR_EMULATED_CHOSEN", **here, **more)
            self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)

    def test_profile_that_the_emulated_gpu_refuses(self):
        """The library says what is wrong (stub.c takes the files that are named .profile)."""
        self.refused(["--gpu", "emulated:./my.card"], 2, "--gpu", "my.card is no profile")

    def test_fault_plan_that_the_emulated_gpu_refuses(self):
        """The library says what is wrong (stub.c knows one good plan)."""
        self.refused([*EMULATED, "--faults", "seed:x"], 2, "--faults", "seed:x is no plan")
        self.refused(EMULATED, 2, "--faults", "seed:y is no plan", WEIR_EMULATED_FAULTS="seed:y")
        self.assertEqual(self.run_weir("run", *EMULATED, "--faults", "seed:1", "--", "touch", self.marker).returncode, 0)
        self.assertTrue(self.marker.exists())

    def test_other_allocator(self):
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            for text in ("backend:cudaMallocAsync", "expandable_segments:True, backend: cudaMallocAsync"):
                self.refused(EMULATED, 2, name, "cudaMallocAsync", **{name: text})

    def test_torchs_own_allocator_settings_are_left_alone(self):
        settings = "backend:native,max_split_size_mb:128"
        self.assertEqual(self.job_environment(*EMULATED, PYTORCH_ALLOC_CONF=settings)["PYTORCH_ALLOC_CONF"], settings)

    def test_no_subcommand_or_an_unknown_one(self):
        self.assert_refused(self.run_weir(), 2, "weir run")
        self.assert_refused(self.run_weir("rnu"), 2, "rnu")


class CommandTest(WeirTestCase):
    def refused(self, command, code, *parts, **environment):
        self.assert_refused(self.run_weir("run", *EMULATED, "--", command, **environment), code, *parts)

    def test_not_found(self):
        self.refused("no-such-command", 127, "no-such-command", "not found")
        self.refused("./no-such-file", 127, "./no-such-file")
        self.refused("", 127, "not found")

    def test_not_executable(self):
        plain = self.folder / "plain"
        plain.write_text("echo hello\n")
        self.refused(plain, 126, str(plain))
        self.refused(self.folder, 126, str(self.folder))
        self.refused("plain", 126, "plain", PATH=f"{self.folder}:{os.environ['PATH']}")

    def test_interpreter_of_a_script_is_missing(self):
        script = self.folder / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.refused(script, 127, str(script))


class UnavailableTest(WeirTestCase):
    def refused(self, flags, *parts, **environment):
        done = self.run_weir("run", *flags, "--", "touch", self.marker, **environment)
        self.assert_refused(done, 4, *parts)

    def driver(self, devices):
        return {"LD_LIBRARY_PATH": os.environ["TEST_DRIVER_FOLDER"], "TEST_DEVICES": str(devices)}

    def test_driver_without_a_device(self):
        self.refused([], "no device", "--gpu emulated", **self.driver(0))

    def test_driver_with_a_device_runs_the_job(self):
        done = self.run_weir("run", "--", "touch", self.marker, **self.driver(1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.marker.exists())

    def test_disabled_needs_no_driver(self):
        done = self.run_weir("run", "--", "touch", self.marker, **self.driver(0), WEIR_DISABLE="1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_missing_part(self):
        for part in ("libweir_core.so", "emulated_gpu/libcuda.so.1", "libweir_preload.so"):
            path = self.folder / "lib" / part
            kept = path.read_bytes()
            path.unlink()
            self.refused(EMULATED, part, "missing")
            path.write_bytes(kept)

    def test_folder_that_ld_preload_cannot_hold(self):
        other = self.folder / "with space"
        other.mkdir()
        (self.folder / "bin").rename(other / "bin")
        (self.folder / "lib").rename(other / "lib")
        self.weir = other / "bin" / "weir"
        self.refused(EMULATED, "with space", "LD_PRELOAD")
