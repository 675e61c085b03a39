"""Runs an example of docs/examples by its name, in a folder of its own, and ends with the JSON line of a program.

In the digest: what the example prints, the model and optimizer that its main() returns, and the tensors of the files it leaves.
"""
import contextlib
import importlib
import io
import os
import pathlib
import re
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched

import torch

from common import Record

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples"
FILES = {  # with tensors, that an example leaves in its folder
    "hf_trainer": {f"checkpoints/checkpoint-{step}/{name}" for step in (2, 3)
                   for name in ("model.safetensors", "optimizer.pt", "scheduler.pt")},
    "lightning_fit": {"checkpoints/epoch=0.ckpt", "checkpoints/epoch=1.ckpt"},
    "lora": {"adapter/adapter_model.safetensors"}}
SAYS = re.compile(r"^(?:step|epoch|continued).*", re.M)  # what is left out is the Trainer's: it prints times too


def record_tensors(record: Record, saved) -> None:
    """Those in what torch.load returned, in its order."""
    if isinstance(saved, torch.Tensor):
        record.tensor(saved)
    elif isinstance(saved, (dict, list, tuple)):
        for part in saved.values() if isinstance(saved, dict) else saved:
            record_tensors(record, part)


def record_files(record: Record, folder: pathlib.Path) -> set:
    """Names of the files with tensors below the folder."""
    names = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".safetensors":
            record.bytes(path.read_bytes())
        elif path.suffix in (".ckpt", ".pt"):
            record_tensors(record, torch.load(path, weights_only=True, map_location="cpu"))
        else:
            continue
        names.add(path.relative_to(folder).as_posix())
    return names


def main():
    name = sys.argv[1]
    sys.path.insert(0, str(EXAMPLES))
    record, printed = Record(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.redirect_stdout(printed):
            model, optimizer = importlib.import_module(name).main()
        files = record_files(record, pathlib.Path(folder))
    assert files == FILES.get(name, set()), files
    text = "\n".join(SAYS.findall(printed.getvalue()))
    record.bytes(text.encode())
    losses = [float(loss) for loss in re.findall(r"loss (\S+)$", text, re.M)]
    assert losses, printed.getvalue()
    record.finish(model, optimizer, losses=losses)


if __name__ == "__main__":
    main()
