"""the steps of jobs whose speed on an A100 of 80 GB was published. No constant of a profile may be fitted to them."""
from dry_run import dry_run

HEAD = "| setting | published | as a step | predicted | error |\n|---|---|---|---|---|"
PAGE = "virtual-clock.md"

# (setting, published units a second, their name, units of a step, source in the documentation)
PUBLISHED = {
    "gpt2-medium-1024": ("MPT-350m, 1024 tokens, BF16, 2 x 64 sequences a card", 64_813, "tokens", 2 * 64 * 1024, "1"),
    "gpt2-medium-2048": ("MPT-350m, 2048 tokens, BF16, 2 x 32 sequences a card", 58_782, "tokens", 2 * 32 * 2048, "1"),
    "resnet50-amp": ("ResNet-50 v1.5, FP16 autocast, channels last, 256 images", 2_470, "images", 256, "2"),
    "resnet50-tf32": ("ResNet-50 v1.5, TF32, 256 images", 938, "images", 256, "2"),
}


def lines(weir, python):
    """The lines of the table, each when it is known."""
    for name, (setting, rate, units, of_a_step, source) in PUBLISHED.items():
        report, _ = dry_run(weir, python, "a100-80g", "step_jobs.py", name)
        published, predicted = 1000 * of_a_step / rate, report["step"]["median_ns"] / 1e6
        yield (f"| {setting} [{source}] | {rate} {units}/s | {published:.0f} ms | {predicted:.0f} ms | "
               f"{100 * (predicted / published - 1):+.0f} % |")
