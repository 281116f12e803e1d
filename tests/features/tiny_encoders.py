"""Tiny classifiers with random weights and a real tokenizer, in a folder, as transformers saves them."""

import string

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {"vocab_size": 80, "max_position_embeddings": 64}


def save_tokenizer(folder, max_length=64):
    """Save a WordPiece tokenizer that knows single letters, digits and marks: a token a character."""
    marks = string.ascii_lowercase + string.digits + ".,'"
    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL, *marks, *(f"##{mark}" for mark in marks[:36])])}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=2000))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_length, **named).save_pretrained(folder)


def save_classifier(folder, labels=("contradiction", "neutral", "entailment"), order=None, **settings):
    """Save a BERT classifier with these labels; `order` permutes the rows of its head along with them."""
    torch.manual_seed(0)
    order = list(range(len(labels))) if order is None else order
    names = {i: labels[k] for i, k in enumerate(order)}
    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(
        id2label=names,
        label2id={v: k for k, v in names.items()},
        pad_token_id=0,
        initializer_range=0.8,
        **size,
        **SIZES,
    )
    config.update(settings)
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.copy_(model.classifier.weight[order])
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_embedding(folder):
    """Save a BERT without a head, whose states make sentence embeddings."""
    torch.manual_seed(2)
    size = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(pad_token_id=0, initializer_range=0.8, **size, **SIZES)).save_pretrained(folder)
    save_tokenizer(folder)
    return folder


def save_distilbert(folder):
    """Save a DistilBERT classifier of two labels, which takes no token types."""
    torch.manual_seed(1)
    config = DistilBertConfig(
        dim=32, hidden_dim=32, n_layers=1, n_heads=2, id2label={0: "not_entailment", 1: "entailment"}, **SIZES
    )
    DistilBertForSequenceClassification(config).save_pretrained(folder)
    save_tokenizer(folder)
    return folder
