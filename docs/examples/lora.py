"""LoRA with peft: adapters on a frozen Llama are trained and saved in ./adapter; then the model continues a text."""
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY, CONTEXT, BATCH, STEPS = 512, 64, 4, 3


def texts():
    """Random token ids: in your job, your tokenizer's."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, VOCABULARY, (STEPS, BATCH, CONTEXT), generator=generator)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Made here, with random weights: in your job, LlamaForCausalLM.from_pretrained(...).
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=2048, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=8, max_position_embeddings=2 * CONTEXT)).to(device)
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for step, ids in enumerate(texts()):
        ids = ids.to(device)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item()}")
    model.save_pretrained("adapter")
    prompt = texts()[0, :1, :8].to(device)
    print("continued:", model.generate(input_ids=prompt, max_new_tokens=8, do_sample=False, pad_token_id=0)[0].tolist())
    return model, optimizer


if __name__ == "__main__":
    main()
