"""Tiny models with random weights in the layouts of AlignScore, SummaC-Conv, MiniCheck, HHEM-2.1 and LettuceDetect."""

import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    ModernBertConfig,
    ModernBertForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
)

from tests.features.tiny_encoders import save_classifier, save_tokenizer

MARKS = "abcdefghijklmnopqrstuvwxyz0123456789.,:?'"
T5_SIZE = {"vocab_size": 256, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4}
PROMPT = "<pad> so said: {text1}\n\nis it so: {text2}"


def save_t5_tokenizer(folder):
    """Save a tokenizer of characters that ends a text as T5's does, and knows its padding token in a text."""
    special = ["<pad>", "</s>", "<unk>"]
    vocabulary = {
        piece: i for i, piece in enumerate([*special, *MARKS, *(f"##{mark}" for mark in MARKS if mark.isalnum())])
    }
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="<unk>", max_input_chars_per_word=2000))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    ).save_pretrained(folder)


def t5_config():
    """Return the configuration of a T5 whose random weights tell texts apart."""
    return T5Config(**T5_SIZE, feed_forward_proj="gated-gelu", decoder_start_token_id=0, initializer_factor=2.0)


def save_generator(folder):
    """Save a T5 as MiniCheck's."""
    torch.manual_seed(0)
    T5ForConditionalGeneration(t5_config()).save_pretrained(folder)
    save_t5_tokenizer(folder)
    return folder


def save_hhem(folder):
    """Save HHEM's layout, weights without the copy of the embeddings, and the T5 that it stands on beside it."""
    torch.manual_seed(1)
    foundation, hhem = folder / "foundation", folder / "tiny-hhem"
    hhem.mkdir(parents=True)
    t5_config().save_pretrained(foundation)
    save_t5_tokenizer(foundation)
    weights = T5ForTokenClassification(t5_config()).state_dict()
    weights["classifier.weight"] /= 50
    kept = {f"t5.{name}": value.clone() for name, value in weights.items() if not name.endswith("embed_tokens.weight")}
    save_file(kept, hhem / "model.safetensors")
    message = {"architectures": ["HHEMv2ForSequenceClassification"], "model_type": "HHEMv2", "prompt": PROMPT}
    (hhem / "config.json").write_text(json.dumps({**message, "foundation": str(foundation)}), encoding="utf-8")
    return hhem


def save_tagger(folder, labels=("supported", "hallucinated")):
    """Save a ModernBERT as LettuceDetect's."""
    torch.manual_seed(2)
    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = ModernBertConfig(
        vocab_size=80,
        max_position_embeddings=256,
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
        initializer_range=0.8,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        **size,
    )
    ModernBertForTokenClassification(config).save_pretrained(folder)
    save_tokenizer(folder, max_length=256)
    return folder


def save_alignscore(folder):
    """Save the checkpoint of AlignScore beside the configuration and tokenizer of its RoBERTa."""
    torch.manual_seed(3)
    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = RobertaConfig(
        vocab_size=80, max_position_embeddings=66, pad_token_id=1, type_vocab_size=2, initializer_range=0.5, **size
    )
    config.architectures = ["RobertaForMaskedLM"]
    config.save_pretrained(folder)
    save_tokenizer(folder)
    state = {f"base_model.{name}": value for name, value in RobertaModel(config).state_dict().items()}
    state["base_model.embeddings.position_ids"] = torch.arange(66)[None]
    for name, rows in (("bin_layer", 2), ("tri_layer", 3), ("reg_layer", 1)):
        layer = torch.nn.Linear(32, rows)
        state |= {f"{name}.weight": layer.weight.detach(), f"{name}.bias": layer.bias.detach()}
    torch.save({"state_dict": state, "hyper_parameters": {"model": "roberta-base"}}, folder / "AlignScore-base.ckpt")
    return folder


def save_summac_conv(folder, n_bins=23):
    """Save an inference model with SummaC's convolution beside it."""
    save_classifier(folder)
    torch.manual_seed(4)
    layers = {"mlp": torch.nn.Linear(n_bins, 1), "layer_final": torch.nn.Linear(3, 2)}
    state = {f"{name}.{key}": value for name, layer in layers.items() for key, value in layer.state_dict().items()}
    torch.save(state, folder / "summac_conv_vitc_sent_perc_e.bin")
    return folder
