"""Hugging Face Trainer: a Llama in bf16 with gradient checkpointing and loader workers; checkpoints go to ./checkpoints."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

VOCABULARY, CONTEXT, BATCH, STEPS = 512, 64, 4, 3


def texts():
    """Random token ids: in your job, your tokenizer's."""
    ids = torch.randint(0, VOCABULARY, (STEPS * BATCH, CONTEXT), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row} for row in ids]


def main():
    set_seed(0)
    # Made here, with random weights: in your job, LlamaForCausalLM.from_pretrained(...).
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=768, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=8, max_position_embeddings=CONTEXT))
    trainer = Trainer(model, TrainingArguments(
        "checkpoints", per_device_train_batch_size=BATCH, max_steps=STEPS, save_steps=2, logging_steps=1, bf16=True,
        gradient_checkpointing=True, dataloader_num_workers=2, report_to=[], disable_tqdm=True), train_dataset=texts())
    trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"step {entry['step']}: loss {entry['loss']}")
    return trainer.model, trainer.optimizer


if __name__ == "__main__":
    main()
