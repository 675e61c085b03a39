"""What `weir run` starts: the environment, the process, its output and its end."""
import json
import os
import signal
import subprocess
import sys

from installed_weir import EMULATED, WeirTestCase

OURS = {"WEIR_EMULATED_SHARED", "WEIR_EMULATED_REAL_DRIVER"}  # a name of each run; of these tests


class EnvironmentTest(WeirTestCase):
    def lib(self, name):
        return str(self.folder / "lib" / name)

    def test_preload_of_the_emulated_gpu(self):
        job = self.job_environment(*EMULATED)
        self.assertEqual(job["LD_PRELOAD"].split(":"),
                         [self.lib("libweir_preload.so"), self.lib("emulated_gpu/libweir_emulated_gpu.so")])
        self.assertEqual((job["WEIR_GPU"], job["WEIR_REQUIRED"], job["WEIR_EMULATED_CHOSEN"]), ("emulated", "1", "1"))

    def test_preload_of_the_real_gpu(self):
        job = self.job_environment(LD_LIBRARY_PATH=os.environ["TEST_DRIVER_FOLDER"])
        self.assertEqual(job["LD_PRELOAD"], self.lib("libweir_preload.so"))
        self.assertNotIn("WEIR_GPU", job)
        self.assertNotIn("WEIR_EMULATED_CHOSEN", job)

    def test_preload_of_the_user_is_kept_and_ours_not_repeated(self):
        other = self.folder / "libother.so"
        other.write_bytes((self.folder / "lib" / "libweir_preload.so").read_bytes())
        user = f"{self.lib('libweir_preload.so')} {other}:{self.lib('emulated_gpu/libweir_emulated_gpu.so')}"
        job = self.job_environment(*EMULATED, LD_PRELOAD=user)
        self.assertEqual(job["LD_PRELOAD"].split(":"), [self.lib("libweir_preload.so"),
                                                       self.lib("emulated_gpu/libweir_emulated_gpu.so"), str(other)])

    def test_flags_become_variables_and_win(self):
        job = self.job_environment("--gpu", "emulated:a100-80g", "--vram", "20GiB", "--ram=64G", "--policy", "lru", "--kernels",
                                   "none", "--timing", "--emulated-vram", "40GiB", "--log", "info", WEIR_VRAM="1GiB", WEIR_NVTX="off")
        found = {name: text for name, text in job.items() if name.startswith("WEIR_") and name not in OURS}
        self.assertEqual(found, {"WEIR_GPU": "emulated:a100-80g", "WEIR_EMULATED_TIMING": "1", "WEIR_VRAM": "20GiB", "WEIR_RAM": "64G", "WEIR_POLICY": "lru",
                                 "WEIR_KERNELS": "none", "WEIR_EMULATED_VRAM": "40GiB", "WEIR_LOG": "info",
                                 "WEIR_NVTX": "off", "WEIR_REQUIRED": "1", "WEIR_EMULATED_CHOSEN": "1"})

    def test_profile_file_is_found_from_wherever_the_job_goes(self):
        (self.folder / "my.profile").write_text("")
        job = self.job_environment("--gpu", "emulated:./my.profile")
        self.assertEqual(job["WEIR_GPU"], f"emulated:{self.folder}/my.profile")

    def test_defaults_are_left_out(self):
        job = self.job_environment(*EMULATED, "--emulated-vram", "profile", "--vram", "auto", WEIR_EMULATED_VRAM="40GiB",
                                   WEIR_LOG="warn")
        self.assertEqual({name for name in job if name.startswith("WEIR_")} - OURS, {"WEIR_GPU", "WEIR_REQUIRED", "WEIR_EMULATED_CHOSEN"})

    def test_gpu_named_in_the_environment_counts(self):
        job = self.job_environment("--kernels", "none", WEIR_GPU="emulated:h100")
        self.assertIn("libweir_emulated_gpu.so", job["LD_PRELOAD"])

    def test_disable_keeps_the_emulated_gpu(self):
        job = self.job_environment(*EMULATED, WEIR_DISABLE="1")
        self.assertIn("libweir_emulated_gpu.so", job["LD_PRELOAD"])
        self.assertEqual(job["WEIR_DISABLE"], "1")


class ProcessTest(WeirTestCase):
    def test_arguments_reach_the_job_as_they_are(self):
        words = ["--vram", "-o", "--", "a b", "", "--json"]
        done = self.run_python(EMULATED, "import sys; print(sys.argv[1:])", *words)
        self.assertEqual(done.stdout, f"{words}\n", done.stderr)

    def test_command_may_follow_without_dashes(self):
        done = self.run_weir("run", *EMULATED, "echo", "--vram", "x")
        self.assertEqual(done.stdout, "--vram x\n", done.stderr)

    def test_same_process(self):
        process = subprocess.Popen([str(self.weir), "run", *EMULATED, "--", "sh", "-c", "echo $$"], text=True,
                                   env=self.environment(), stdout=subprocess.PIPE)
        self.assertEqual(int(process.communicate()[0]), process.pid)

    def test_exit_code(self):
        for code in (0, 1, 3, 42, 255):
            self.assertEqual(self.run_python(EMULATED, f"raise SystemExit({code})").returncode, code)

    def test_death_by_signal(self):
        done = self.run_python(EMULATED, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_stdin(self):
        self.assertEqual(self.run_weir("run", *EMULATED, "--", "cat", stdin="text").stdout, "text")

    def test_closed_descriptors_are_not_added(self):
        done = self.run_python(EMULATED, "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
        plain = subprocess.run([sys.executable, "-S", "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"],
                               env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, input="")
        self.assertEqual(done.stdout, plain.stdout)


class OutputTest(WeirTestCase):
    def test_json_on_stdout_and_the_jobs_output_on_stderr(self):
        done = self.run_weir("run", *EMULATED, "--vram", "1GiB", "--json", "--", "echo", "from the job")
        plan = json.loads(done.stdout)
        self.assertEqual(done.stderr, "from the job\n")
        self.assertEqual((plan["options"]["WEIR_VRAM"], plan["options"]["WEIR_RAM"]), ("1GiB", "auto"))

    def test_file(self):
        out = self.folder / "plan.json"
        done = self.run_weir("run", *EMULATED, "-o", out, "--", "echo", "from the job")
        self.assertEqual(done.stdout, "from the job\n")
        self.assertEqual(json.loads(out.read_text())["options"]["WEIR_GPU"], "emulated")

    def test_file_that_cannot_be_written(self):
        done = self.run_weir("run", *EMULATED, "-o", self.folder / "none" / "x", "--", "touch", self.marker)
        self.assert_refused(done, 1, "cannot write")

    def test_json_is_the_same_again_from_another_folder(self):
        first = self.run_weir("run", *EMULATED, "--json", "--", "true")
        again = self.run_weir("run", *EMULATED, "--json", "--", "true", cwd="/")
        self.assertEqual(first.stdout, again.stdout)
        self.assertNotIn(str(self.folder), first.stdout)
