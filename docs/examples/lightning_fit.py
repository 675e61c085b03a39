"""Lightning: Trainer.fit with a validation pass and a checkpoint in ./checkpoints after each epoch."""
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

WIDTH, BATCH = 1024, 32


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 2048), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(2048, 2048),
            torch.nn.GELU(), torch.nn.Linear(2048, WIDTH))

    def loss(self, batch):
        inputs, targets = batch
        return torch.nn.functional.mse_loss(self.layers(inputs), targets)

    def training_step(self, batch, index):
        loss = self.loss(batch)
        print(f"step {self.global_step}: loss {loss.item()}")
        return loss

    def validation_step(self, batch, index):
        print(f"epoch {self.current_epoch}: validation loss {self.loss(batch).item()}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def batches(count: int, seed: int):
    inputs = torch.randn(count * BATCH, WIDTH, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(inputs, inputs.flip(1)), batch_size=BATCH)


def main():
    torch.manual_seed(0)
    model = Regression()
    trainer = lightning.Trainer(
        max_epochs=2, logger=False, callbacks=[ModelCheckpoint("checkpoints", filename="{epoch}", save_top_k=-1)],
        num_sanity_val_steps=0, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, batches(3, seed=1), batches(1, seed=2))
    return model, trainer.optimizers[0]


if __name__ == "__main__":
    main()
