"""Caps and settings of torch's allocator that a job cannot have as they are asked for: what holds instead, and what is said."""
import unittest

from installation import CAP, InstallationTestCase

CARD = 1 << 30
# Ten tensors that can never leave, for their addresses are known.
PINNED = """
import json, torch, torch_weir
kept = [torch.full((4 << 20,), index, dtype=torch.uint8, device="cuda") for index in range(10)]
addresses = [tensor.data_ptr() for tensor in kept]
cap = lambda: torch_weir.stats()["weir/cap"]
"""


class Caps(InstallationTestCase):
    def on_a_small_card(self, program, **variables):
        """The result of the job, and what Weir says. The emulated card has 1 GiB."""
        done = self.python(program, self.emulated(WEIR_EMULATED_VRAM=str(CARD), WEIR_RAM="1GiB", **variables))
        return self.json(done), [line for line in self.said(done) if "use has reached" not in line]

    def test_CapAboveTheCard_TheCardIsTheCap_OneWarning(self):
        program = "import json, torch, torch_weir; torch.ones(1, device='cuda'); print(json.dumps(torch_weir.stats()['weir/cap']))"
        cap, said = self.on_a_small_card(program, WEIR_VRAM="200GiB")
        self.assertEqual(cap, CARD)
        self.assertEqual(said, ["weir: device 0: WEIR_VRAM=200.00 GiB is more than the card has; the cap is 1.00 GiB"])

    def test_Set_BelowWhatCannotLeave_TheCapStays_AboveTheCard_TheCardIsTheCap(self):
        program = PINNED + """
try:
    torch_weir.set(vram="16MiB")
except Exception as error:
    refused = [type(error).__name__, str(error)]
after = [cap(), torch_weir.stats()["weir/resident"], [int(tensor[-1]) for tensor in kept]]
torch_weir.set(vram="200GiB")
print(json.dumps([refused, after, cap()]))
"""
        ((kind, text), (stays, resident, values), above), said = self.on_a_small_card(program, WEIR_VRAM="64MiB")
        self.assertEqual(kind, "RuntimeError")
        for part in ("does not fit under a cap of 16.00 MiB, which stays 64.00 MiB", "40.00 MiB  pinned for good",
                     "smallest cap that holds what cannot leave: 40.00 MiB (WEIR_VRAM=40MiB)", "try: a cap of 40MiB or more"):
            self.assertIn(part, text)
        self.assertNotIn("driver", text)
        self.assertEqual((stays, values), (CAP, list(range(10))))
        self.assertLessEqual(resident, CAP)
        self.assertEqual(above, CARD)
        self.assertEqual(said, ["weir: a cap of 200.00 GiB is more than device 0 has: 1.00 GiB it is"])

    def test_Fraction_BelowWhatCannotLeave_HoldsOnceItCan(self):
        """As with torch's own allocator the call succeeds; what is allocated next fails until there is room."""
        program = PINNED + """
torch.cuda.set_per_process_memory_fraction((16 << 20) / (1 << 30))
try:
    torch.ones(8 << 20, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    said = str(error)
values = [int(tensor[-1]) for tensor in kept]
del kept
total = torch.ones(8 << 20, dtype=torch.uint8, device="cuda").sum().item()
print(json.dumps([said, cap(), values, total, torch_weir.stats()["weir/resident"]]))
"""
        (text, cap, values, total, resident), said = self.on_a_small_card(program, WEIR_VRAM="64MiB")
        self.assertIn("does not fit under a cap of 16.00 MiB, which holds once it does", " ".join(said))
        self.assertIn("the cap is 16.00 MiB (WEIR_VRAM), 40.00 MiB held", text)
        self.assertEqual((cap, values, total), (16 << 20, list(range(10)), 8 << 20))
        self.assertLessEqual(resident, 16 << 20)


class TorchsSettings(InstallationTestCase):
    """PYTORCH_ALLOC_CONF; what Weir cannot stand in for (cudaMallocAsync) is refused: install_test.py, autoload_failures_test.py."""
    def test_KeysWithoutEffect_AreNamedOnce_AndOfFractionAndCapTheSmallerHolds(self):  # C29
        program = "import json, torch, torch_weir; torch.ones(1, device='cuda'); print(json.dumps(torch_weir.stats()['weir/cap']))"
        for name, fraction, cap in (("PYTORCH_ALLOC_CONF", "0.015625", 16 << 20), ("PYTORCH_CUDA_ALLOC_CONF", "0.5", CAP)):  # C121
            settings = f"max_split_size_mb:64,expandable_segments:True,garbage_collection_threshold:0.8,per_process_memory_fraction:{fraction}"
            done = self.python(program, self.emulated(WEIR_VRAM="64MiB", WEIR_EMULATED_VRAM=str(CARD), **{name: settings}))
            self.assertEqual(self.json(done), cap)
            said = [line for line in self.said(done) if line.startswith("weir:")]
            self.assertEqual(said, ["weir: PYTORCH_ALLOC_CONF: max_split_size_mb, garbage_collection_threshold have no effect on Weir's "
                                    "blocks"])


if __name__ == "__main__":
    unittest.main()
