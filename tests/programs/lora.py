"""LoRA by peft: a frozen Llama, adapters on its attention, generation at the end (`requirements.txt`)."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is fetched

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

from common import Record, device, tokens

VOCABULARY, CONTEXT, BATCH = 512, 64, 4


def main():
    torch.manual_seed(70)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=2048, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=8, max_position_embeddings=2 * CONTEXT)).to(device())
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    record = Record()
    for step in range(3):
        ids = tokens((BATCH, CONTEXT), VOCABULARY, 71 + step).to(device())
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        record.loss(loss)
    prompt = tokens((1, 8), VOCABULARY, 80).to(device())
    record.tensor(model.generate(input_ids=prompt, max_new_tokens=8, do_sample=False, pad_token_id=0))
    record.finish(model, optimizer)


if __name__ == "__main__":
    main()
