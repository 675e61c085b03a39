"""torch_weir.install(), set(), status(), stats() and path() in a running process."""
import os
import subprocess
import unittest

from installation import CAP, JOB, InstallationTestCase

CATCH = """
def refused(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]
"""


class Install(InstallationTestCase):
    def test_Install_BeforeCuda_JobRunsCappedWithTheSameResult(self):
        figures = self.result("import torch_weir\ntorch_weir.install(vram='64MiB', policy='lru')\n" + JOB, self.emulated())
        self.assertEqual(figures["way"], "install()")
        self.assert_one_weir(figures)
        self.assert_capped(figures)
        self.assertEqual(figures["checksum"], self.checksum_without_weir())

    def test_Install_AfterCudaStarted_ErrorWithTheWayOut(self):
        """C23. The job goes on as before, and nothing of the options is left."""
        done = self.result(CATCH + """
import json, os, torch, torch_weir
kept = torch.ones(4, device="cuda")
error = refused(torch_weir.install, vram="64MiB")
more = torch.ones(4, device="cuda")
print(json.dumps({"error": error, "left": os.environ.get("WEIR_VRAM"), "sum": (kept + more).sum().item(),
                  "in_place": torch_weir.status().in_place, "loaded": "libweir_torch" in open("/proc/self/maps").read()}))
""", self.emulated())
        self.assertEqual(done["error"][0], "RuntimeError")
        for part in ("CUDA has started already", "restart the kernel", "WEIR_VRAM", "weir run"):
            self.assertIn(part, done["error"][1])
        self.assertEqual((done["left"], done["sum"], done["in_place"], done["loaded"]), (None, 8.0, False, False))

    def test_Install_OtherAllocators_ErrorNamesIt(self):
        program = CATCH + """
import json, os, sys, torch, torch_weir
if len(sys.argv) == 1 and "OTHER" in os.environ:
    other = torch.cuda.memory.CUDAPluggableAllocator(os.environ["OTHER"], "other_malloc", "other_free")
    torch.cuda.memory.change_current_allocator(other)
print(json.dumps([refused(torch_weir.install, vram="64MiB"), torch.ones(4, device="cuda").sum().item()]))
"""
        for variables, part in (({"OTHER": os.environ["TEST_OTHER_ALLOCATOR"]}, "(pluggable)"),
                                ({"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, "unset backend:cudaMallocAsync")):
            error, total = self.result(program, self.emulated(**variables))
            self.assertEqual((error[0], total), ("RuntimeError", 4.0))
            self.assertIn("another allocator in place", error[1])
            self.assertIn(part, error[1])

    def test_Install_NoPluginForThisTorch_ErrorSaysWhich(self):
        import torch
        minor = ".".join(torch.__version__.split(".")[:2])
        site = self.copy_without(f"lib/libweir_torch_{minor.replace('.', '_')}.so")
        kind, text = self.result(CATCH + "import json, torch_weir\nprint(json.dumps(refused(torch_weir.install, vram='1GiB')))",
                                 self.emulated(site))
        self.assertEqual(kind, "RuntimeError")
        self.assertIn(f"torch {torch.__version__} is not known to this Weir", text)

    def test_Install_WrongOptions_AreRefusedInTheWordsOfTheCommand(self):
        """Without torch, which is not reached."""
        errors = self.result(CATCH + """
import json, sys, torch_weir
sys.modules["torch"] = None
print(json.dumps([refused(torch_weir.install, vram="24Gb"), refused(torch_weir.install, vrm="1GiB"),
                  refused(torch_weir.install, vram=1 << 20), refused(torch_weir.install, vram="1GiB")]))
""", self.emulated())
        self.assertEqual([kind for kind, _ in errors], ["ValueError", "TypeError", "ValueError", "RuntimeError"])
        for (_, text), part in zip(errors, ('WEIR_VRAM: "24Gb" is not a size', "did you mean WEIR_VRAM?", "smallest cap", "no torch")):
            self.assertIn(part, text)

    def test_Install_Again_UntilCudaStartsWithOtherOptionsThenNot(self):
        """C23: install twice."""
        done = self.result(CATCH + """
import json, os, torch, torch_weir, warnings
warnings.simplefilter("error")
torch_weir.install(vram="64MiB", ram="1GiB")
before = torch_weir.install(vram="32MiB")
torch.ones(4, device="cuda")
after = torch_weir.install(vram="32MiB", ram="1GiB")
other = refused(torch_weir.install, ram="2GiB")
print(json.dumps({"before": str(before), "after": str(after), "other": other, "cap": torch_weir.stats()["weir/cap"],
                  "ram": os.environ["WEIR_RAM"]}))
""", self.emulated(WEIR_VRAM="", WEIR_LOG="info"))
        self.assertIn("not in place: it comes in at the first use of CUDA (install()); WEIR_VRAM=32MiB", done["before"])
        self.assertIn("in place by install(); WEIR_VRAM=32MiB", done["after"])
        self.assertEqual((done["other"][0], done["cap"], done["ram"]), ("RuntimeError", 32 << 20, "1GiB"))
        self.assertIn("torch_weir.set(vram=...)", done["other"][1])

    def test_Install_EnvironmentSaysOtherwise_TheEnvironmentHolds(self):
        """Before CUDA starts and after; the line of the caller is shown."""
        cap, warned = self.result("""
import json, torch, torch_weir, warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as warned:
    torch_weir.install(vram="32MiB", ram="1GiB")
    torch.ones(4, device="cuda")
    torch_weir.install(ram="1GiB")
print(json.dumps([torch_weir.stats()["weir/cap"], [[str(w.message), w.filename] for w in warned]]))
""", self.emulated(WEIR_VRAM="64MiB"))
        self.assertEqual((cap, len(warned)), (CAP, 1))
        self.assertIn("WEIR_VRAM=64MiB of the environment holds, not 32MiB", warned[0][0])
        self.assertEqual(warned[0][1], "<string>")

    def test_Status_VariableSetTooLate_SaysSo(self):
        """C124: a script that sets the variable after importing torch."""
        done = self.python("import os, torch, torch_weir; os.environ['WEIR_VRAM'] = '64MiB'; print(torch_weir.status())",
                           self.environment())
        self.assertIn("WEIR_VRAM was set after torch was imported", done.stdout)
        self.assertIn("torch_weir.install()", done.stdout)

    def test_Forked_BeforeCuda_TheChildIsCapped(self):
        """As notebook launchers do. The parent must not have started CUDA, nor half of Weir."""
        program = "import os, torch, torch_weir\n{}\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n" + JOB
        for install, variables, way in (("torch_weir.install(vram='64MiB')", {}, "install()"), ("", {"WEIR_VRAM": "64MiB"}, "entry point")):
            figures = self.result(program.replace("{}", install, 1), self.emulated(**variables))
            self.assertEqual(figures["way"], way)
            self.assert_capped(figures)
            self.assertEqual(figures["checksum"], self.checksum_without_weir())

    def test_Set_ChangesTheCapOrSaysThatThisBuildCannot(self):
        done = self.result(CATCH + """
import ctypes, json, torch, torch_weir
early = refused(torch_weir.set, vram="1GiB")
torch_weir.install(vram="64MiB")
torch.ones(4, device="cuda")
can = hasattr(torch_weir._core.loaded(), "weir_set_cap")
errors = [refused(torch_weir.set, vram=bad) for bad in ("80%", "auto", "1MiB", "0:64MiB,0:32MiB", "x:1GiB")]
print(json.dumps([early, errors, can, refused(torch_weir.set, vram="128MiB"), torch_weir.stats(0)["weir/cap"]]))
""", self.emulated())
        early, errors, can, changed, cap = done
        self.assertEqual(early[0], "RuntimeError")
        self.assertIn("not in place", early[1])
        self.assertEqual({kind for kind, _ in errors}, {"ValueError"})
        if can:
            self.assertEqual((changed[0], cap), ("nothing", 128 << 20), changed)
        else:
            self.assertEqual((changed[0], cap), ("NotImplementedError", CAP), changed)
            self.assertIn("weir_set_cap", changed[1])

    def test_Path_IsWhatTheCommandPrints(self):
        command = subprocess.run([self.package / "bin" / "weir", "path"], stdout=subprocess.PIPE, text=True, check=True).stdout
        done = self.python("import torch_weir, sys; print(torch_weir.path(), 'torch' in sys.modules)", self.environment())
        self.assertEqual(done.stdout, f"{command.strip()} False\n")


if __name__ == "__main__":
    unittest.main()
