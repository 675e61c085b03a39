"""Peaks of models of published sizes: models_test.py MODEL. The report has what torch's allocator counts in the same run, and
the classes what the optimizer's and the model's own numbers say."""
import sys
import unittest

from dry_job import DryJobTest

# Batch, parameters, bytes of each. Counts: GPT-2 124M, Llama 3.2 1B, T5-small and ViT-B/16 as their authors' checkpoints have them,
# ResNet-50 as torchvision has it; for the U-Net every double convolution, rise and the head, summed up.
WIDTHS = (64, 128, 256, 512, 1024)
UNET = sum(9 * (inputs + width) * width + 4 * width for inputs, width in zip((3, *WIDTHS), WIDTHS)) + sum(
    4 * 2 * width * width + width + 9 * (2 * width + width) * width + 4 * width for width in WIDTHS[:-1]) + 64 * 2 + 2
MODELS = {"gpt2": (8, 124_439_808, 4), "llama": (2, 1_235_814_400, 2), "t5": (16, 60_506_624, 4), "vit": (64, 86_567_656, 4),
          "resnet50": (64, 25_557_032, 4), "unet": (8, UNET, 4)}
NAME = sys.argv[1]


class ModelTest(DryJobTest):
    def check(self, *flags, code):
        batch, parameters, width = MODELS[NAME]
        report, printed = self.dry_run(f"import models\nmodels.train({NAME!r}, {batch})\n", *flags, code=code)
        counted, tensors, allocated, reserved = map(int, printed.split())
        self.assertEqual(counted, parameters)
        self.check_peaks(report, allocated, reserved)
        at_peak = report["memory"]["at_peak"]
        self.assertEqual(at_peak["parameter"], parameters * width)
        self.assertEqual(at_peak["optimizer"], 2 * parameters * width + 4 * tensors)  # two moments, and a count of steps each
        self.assertEqual((report["values"], report["step"]["count"]), ("exact", 2))
        return report

    def test_peaks(self):
        report = self.check("--gpu", "a100-80g", code=0)
        self.assertTrue(report["fits"])
        if report["memory"]["peak_allocated_bytes"] <= 12 << 30:
            return
        small = self.check("--gpu", "rtx3060-12g", code=3)
        self.assertFalse(small["fits"])
        self.assertEqual(small["memory"]["peak_allocated_bytes"], report["memory"]["peak_allocated_bytes"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
