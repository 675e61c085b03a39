"""Lightning: Trainer.fit with a validation pass after each epoch and a checkpoint that is written (`requirements.txt`)."""
import logging
import os
import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from common import Record, device, tokens
from models import BATCH, CONTEXT, GPT, VOCABULARY


class Language(lightning.LightningModule):
    def __init__(self, record: Record):
        super().__init__()
        self.model, self.record = GPT(), record

    def training_step(self, ids, _):
        loss = self.model.loss(ids)
        self.record.loss(loss)
        return loss

    def validation_step(self, ids, _):
        self.record.loss(self.model.loss(ids))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def loader(batches: int, seed: int):
    return torch.utils.data.DataLoader(tokens((BATCH * batches, CONTEXT + 1), VOCABULARY, seed), batch_size=BATCH)


def main():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.manual_seed(60)
    job = Language(Record())
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu" if device().type == "cpu" else "gpu", devices=1, max_epochs=2, logger=False,
            callbacks=[ModelCheckpoint(folder, filename="{epoch}", save_top_k=-1)], num_sanity_val_steps=0,
            enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(job, loader(2, 61), loader(1, 62))
        saved = sorted(os.listdir(folder))
        assert saved == ["epoch=0.ckpt", "epoch=1.ckpt"], saved
        for _, tensor in sorted(torch.load(os.path.join(folder, saved[0]), weights_only=True)["state_dict"].items()):
            job.record.tensor(tensor)
    job.record.finish(job.model, trainer.optimizers[0])


if __name__ == "__main__":
    main()
