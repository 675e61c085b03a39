"""`import torch` where WEIR_VRAM asks for Weir and it cannot be had: torch is imported, one line says why (C127)."""
import unittest

from installation import PROGRAM, InstallationTestCase


class Failures(InstallationTestCase):
    def test_LoaderMissing_OneLineWithTheCause(self):
        site = self.copy_without("lib/libweir_preload.so")
        self.assert_one_line(self.emulated(site, WEIR_VRAM="1GiB"), "libweir_preload.so", "cannot open", "runs without Weir")

    def test_LoaderMissing_Required_ExitsWith4(self):
        site = self.copy_without("lib/libweir_preload.so")
        done = self.python(PROGRAM, self.emulated(site, WEIR_VRAM="1GiB", WEIR_REQUIRED="1"), code=4)
        self.assertIn("libweir_preload.so", self.said(done)[0])

    def test_CoreMissing_OneLineWithTheCause(self):
        site = self.copy_without("lib/libweir_core.so")
        self.assert_one_line(self.emulated(site, WEIR_VRAM="1GiB"), "libweir_core.so")

    def test_ModuleMissing_TorchIsImported(self):
        site = self.copy_without("_loader.py")
        for cached in (site / "torch_weir" / "__pycache__").glob("_loader.*"):
            cached.unlink()
        done = self.python("import torch; print(torch.ones(2, device='cuda').sum().item())", self.emulated(site, WEIR_VRAM="1GiB"))
        self.assertEqual(done.stdout, "2.0\n")
        self.assertEqual(len(self.said(done)), 1, done.stderr)
        self.assertIn("_loader", self.said(done)[0])

    def test_WrongValue_OneLine(self):
        self.assert_one_line(self.emulated(WEIR_VRAM="24Gb"), 'WEIR_VRAM: "24Gb" is not a size', "torch's own allocator")

    def test_MisspeltVariable_IsTold(self):
        """It asks for Weir, which says what was meant."""
        done = self.python(PROGRAM, self.emulated(WEIR_VRM="1GiB"))
        self.assertEqual(done.stdout, "[true, 2.0]\n")
        self.assertIn("did you mean WEIR_VRAM?", done.stderr)

    def test_CudaStartedBehindTorchsPython_OneLine(self):
        """C23: as a C++ extension may, here by the function that the package has wrapped."""
        self.assert_one_line(self.emulated(WEIR_VRAM="1GiB"), "CUDA is already in use",
                             program=PROGRAM.replace("total =", "torch._C._cuda_init.__wrapped__(); total ="))

    def test_NoCard_TorchsOwnErrorAndNoWordOfWeir(self):
        program = """
import torch
try:
    torch.ones(2, device="cuda")
except RuntimeError as error:
    print("NVIDIA" in str(error) or "No CUDA GPUs" in str(error), torch.ones(2).sum().item())
"""
        done = self.python(program, self.environment(WEIR_VRAM="1GiB", CUDA_VISIBLE_DEVICES=""))
        self.assertEqual((done.stdout, done.stderr), ("True 2.0\n", ""))

    def test_CudaMallocAsync_OneLine(self):
        self.assert_one_line(self.emulated(WEIR_VRAM="1GiB", PYTORCH_ALLOC_CONF="backend:cudaMallocAsync"), "cudaMallocAsync")


if __name__ == "__main__":
    unittest.main()
