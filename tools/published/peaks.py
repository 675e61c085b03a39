"""the peaks of jobs of which somebody printed `torch.cuda.max_memory_allocated()`, on an RTX 4090."""
import json

from dry_run import dry_run

HEAD = "| 128 images of 224 x 224, FP32, SGD | published | dry run | error |\n|---|---|---|---|"
PAGE = "dryrun.md"

# MiB, in the order in which they ran.
PUBLISHED = {"one convolution": 530.9, "VGG-16 with batch norm": 17231.9, "ResNet-50": 11738.2, "ViT-B/16": 17218.1}


def lines(weir, python):
    """The lines of the table."""
    _, printed = dry_run(weir, python, "rtx4090", "peak_jobs.py")
    for (name, published), peak in zip(PUBLISHED.items(), json.loads(printed), strict=True):
        predicted = peak / 2**20
        yield f"| {name} | {published} MiB | {predicted:.1f} MiB | {100 * (predicted / published - 1):+.1f} % |"
