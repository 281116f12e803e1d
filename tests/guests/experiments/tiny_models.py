"""A tiny causal language model with random weights, a tokenizer of bytes and a chat template, in a folder."""

TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def save_causal(folder, template=TEMPLATE, positions=2048, words=()):
    """Save the model and its tokenizer; `template` None leaves it without one; `words` are one token each."""
    # Here, so that to collect the tests loads none of them, which takes seconds in each worker.
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    pieces = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=template
    )
    wrapped.add_tokens(list(words))
    wrapped.save_pretrained(folder)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = LlamaConfig(
        vocab_size=len(wrapped), num_key_value_heads=2, max_position_embeddings=positions, **size, **tokens
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
