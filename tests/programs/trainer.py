"""Hugging Face Trainer: a Llama in bf16 with gradient checkpointing, two forked workers and a checkpoint in the middle."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

from common import Record, device, tokens

VOCABULARY, CONTEXT, BATCH, STEPS = 512, 64, 4, 3


def main():
    set_seed(22)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=768, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=8, max_position_embeddings=CONTEXT))
    texts = [{"input_ids": ids, "labels": ids} for ids in tokens((BATCH * STEPS, CONTEXT), VOCABULARY, 23)]
    record = Record()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(model, TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=STEPS, save_steps=2, logging_steps=1, bf16=True,
            gradient_checkpointing=True, dataloader_num_workers=2, dataloader_pin_memory=device().type == "cuda",
            use_cpu=device().type == "cpu", report_to=[], disable_tqdm=True), train_dataset=texts)
        trainer.train()
        assert sorted(os.listdir(folder)) == ["checkpoint-2", "checkpoint-3"]
        saved = torch.load(os.path.join(folder, "checkpoint-2", "optimizer.pt"), weights_only=True)
        for _, state in sorted(saved["state"].items()):
            record.tensor(state["exp_avg"])
    for entry in trainer.state.log_history:
        if "loss" in entry:
            record.loss(torch.tensor(entry["loss"]))
    record.finish(trainer.model, trainer.optimizer)


if __name__ == "__main__":
    main()
