"""AlignScore, SummaC, MiniCheck, HHEM-2.1 and LettuceDetect, each held to another computation of its published formula.

Weights are random: what is tested is the arithmetic on the same weights, to 1e-5, not the models' judgment.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    RobertaModel,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from deep.asking import judges_of
from deep.exceptions import InputError
from deep.integrations.encoders import (
    ENCODERS,
    load_again,
    load_alignscore,
    load_hhem,
    load_lettucedetect,
    load_minicheck,
    load_named_encoder,
    load_summac,
    load_summac_conv,
)
from deep.judges import Judge
from deep.records import ABSTAIN, Example
from tests.features.tiny_encoders import save_classifier
from tests.features.tiny_published import (
    PROMPT,
    save_alignscore,
    save_generator,
    save_hhem,
    save_summac_conv,
    save_tagger,
    t5_config,
)

SENTENCES = ["The dam broke.", "Water ran to the town.", "Nobody was hurt.", "Roads are shut until noon."]
SOURCE = " ".join(SENTENCES)
CLAIMS = ["The dam broke.", "Water ran. Some were hurt.", "Roads are shut."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folder of a tiny model for each way."""
    home = tmp_path_factory.mktemp("published")
    return {
        "alignscore": save_alignscore(home / "tiny-alignscore"),
        "summac-conv": save_summac_conv(home / "tiny-conv"),
        "summac-zs": save_classifier(home / "tiny-nli"),
        "minicheck": save_generator(home / "tiny-t5"),
        "hhem": save_hhem(home),
        "lettucedetect": save_tagger(home / "tiny-modernbert"),
    }


@pytest.fixture(params=sorted(ENCODERS))
def judge(request, folders):
    """Return each judge in turn."""
    return ENCODERS[request.param](folders[request.param])


def apart(values):
    """Return values, once it is sure that random weights tell pairs apart, so that equality says something."""
    assert np.std(values) > 1e-4
    return values


def softmax(logits):
    """Return probabilities of a tensor of logits, in double precision."""
    return torch.softmax(logits.double(), dim=-1)


@torch.no_grad()
def test_summac_is_entailment_less_contradiction(folders):
    """Mean over the claim's sentences of max E over the source's sentences less max C over them."""
    folder = folders["summac-zs"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    result = []
    for claim in CLAIMS:
        by_sentence = []
        for sentence in claim.replace(". ", ".|").split("|"):
            p = torch.stack(
                [softmax(model(**tokenizer(s, sentence, return_tensors="pt")).logits[0]) for s in SENTENCES]
            )
            by_sentence.append(p[:, 2].max() - p[:, 0].max())  # labels: contradiction, neutral, entailment
        result.append(float(torch.stack(by_sentence).mean()))
    judged = load_summac(folder).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(result), abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score >= 0) for score in result]


@torch.no_grad()
def test_alignscore_is_its_own_head(folders):
    """Pooled state, one linear layer of three: mean over the claim's sentences of the largest P(aligned) of a chunk."""
    folder = folders["alignscore"]
    state = torch.load(folder / "AlignScore-base.ckpt", weights_only=True)["state_dict"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), RobertaModel(AutoConfig.from_pretrained(folder)).eval()
    model.load_state_dict({name: state[f"base_model.{name}"] for name in model.state_dict()})
    judge, result = load_alignscore(folder), []
    for claim in CLAIMS:
        chunks = [row[0][0] for row in judge._pairs(Example(SOURCE, claim, "1"), judge._cut_source)]
        assert len(chunks) > 1
        aligned = []
        for sentence in claim.replace(". ", ".|").split("|"):
            pooled = [model(**tokenizer(chunk, sentence, return_tensors="pt")).pooler_output[0] for chunk in chunks]
            logits = [state["tri_layer.weight"] @ x + state["tri_layer.bias"] for x in pooled]
            aligned.append(max(float(softmax(three)[0]) for three in logits))
        result.append(sum(aligned) / len(aligned))
    judged = judge.label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(result), abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score >= 0.5) for score in result]


@torch.no_grad()
@pytest.mark.parametrize("n_bins", [23, 50])
def test_summac_conv_is_a_histogram_and_two_layers(tmp_path, n_bins):
    """Counts of P(entailment) by bin, weighted; the mean over sentences three times; P of the second of two logits."""
    folder = save_summac_conv(tmp_path / "conv", n_bins)
    state = torch.load(folder / "summac_conv_vitc_sent_perc_e.bin", weights_only=True)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    inner = "0 .01 .02 .03 .04 .07 .13 .37 .90 .91 .92 .93 .94 .95 .955 .96 .965 .97 .975 .98 .985 .99 .995 1"
    edges = [float(word) for word in inner.split()] if n_bins == 23 else [i / 50 for i in range(51)]
    twice = [*SENTENCES, SENTENCES[0]]  # a sentence that the source has twice counts twice
    result = []
    for claim in CLAIMS:
        values = []
        for sentence in claim.replace(". ", ".|").split("|"):
            row = torch.zeros(n_bins)
            for message in twice:
                e = float(softmax(model(**tokenizer(message, sentence, return_tensors="pt")).logits[0])[2])
                row[max(i for i, edge in enumerate(edges[:-1]) if e >= edge)] += 1
            assert row.sum() == 5
            values.append(state["mlp.weight"][0] @ row + state["mlp.bias"][0])
        mean = torch.stack(values).mean()
        logits = state["layer_final.weight"] @ torch.stack([mean] * 3) + state["layer_final.bias"]
        result.append(float(softmax(logits)[1]))
    judged = load_summac_conv(folder).label_many([Example(" ".join(twice), claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(result), abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score >= 0.5) for score in result]


@torch.no_grad()
def test_minicheck_generator_is_the_published_formula(folders):
    """The first token of T5's answer: softmax over the tokens of 0 and 1."""
    folder = folders["minicheck"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5ForConditionalGeneration.from_pretrained(folder).eval()
    result = []
    for claim in CLAIMS:
        encoded = tokenizer(f"predict: {SOURCE}</s>{claim}", return_tensors="pt")
        ids = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        logits = model(**ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
        result.append(float(softmax(logits[[3, 209]])[1]))
    judged = load_minicheck(folder).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(result), abs=1e-5)


@torch.no_grad()
def test_minicheck_classifier_takes_the_best_chunk(tmp_path):
    """P of the second label, chunk and claim as one text with a separator; the largest over the chunks."""
    folder = save_classifier(tmp_path / "m", ("unsupported", "supported"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    judge = load_minicheck(folder)
    for claim in CLAIMS[::2]:
        room = 64 - len(tokenizer(f"[SEP]{claim}")["input_ids"])
        chunks = judge._cut_source(SOURCE, room)
        assert len(chunks) > 1
        p = [
            float(softmax(model(**tokenizer(f"{chunk}[SEP]{claim}", return_tensors="pt")).logits[0])[1])
            for chunk in chunks
        ]
        judgment = judge.label(Example(SOURCE, claim, "1"))
        assert judgment.score == pytest.approx(max(apart(p)), abs=1e-5)
        assert judgment.evidence == (chunks[int(np.argmax(p))],)


@torch.no_grad()
def test_hhem_is_the_published_formula(folders):
    """An encoder over the filled prompt and a linear layer on its first state."""
    weights = load_file(folders["hhem"] / "model.safetensors")
    encoder = T5EncoderModel(t5_config())
    inner = {name.removeprefix("t5.transformer."): w for name, w in weights.items() if "transformer." in name}
    inner["encoder.embed_tokens.weight"] = inner["shared.weight"]
    encoder.load_state_dict(inner)
    tokenizer = AutoTokenizer.from_pretrained(folders["hhem"].parent / "foundation")
    result = []
    for claim in CLAIMS:
        encoded = tokenizer(PROMPT.format(text1=SOURCE, text2=claim), return_tensors="pt")
        assert encoded["input_ids"][0, 0] == 0
        states = encoder.eval()(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"])[0][0]
        logits = weights["t5.classifier.weight"] @ states[0] + weights["t5.classifier.bias"]
        result.append(float(softmax(logits)[1]))
    judged = load_hhem(folders["hhem"]).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(result), abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("max_tokens", [None, 110])
def test_lettucedetect_is_the_published_formula(folders, max_tokens):
    """P(unsupported) of each token of the claim, the largest over the chunks; the worst token decides."""
    folder = folders["lettucedetect"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForTokenClassification.from_pretrained(folder)
    judge = load_lettucedetect(folder, max_tokens=max_tokens)
    result = []
    for claim in CLAIMS:
        n = len(tokenizer(claim, add_special_tokens=False)["input_ids"])
        (chunks,) = {tuple(part for ((part, _),) in judge._pairs(Example(SOURCE, claim, "1"), judge._cut_source))}
        assert (len(chunks) > 1) == (max_tokens is not None)
        by_chunk = []
        for chunk in chunks:
            prompt = f"Summarize the following text:\npassage 1: {chunk}\noutput:"
            encoded = tokenizer(prompt, claim, return_tensors="pt")
            logits = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits[0]
            by_chunk.append(softmax(logits)[-1 - n : -1, 1])
        result.append(1 - float(torch.stack(by_chunk).amax(dim=0).max()))
    judged = judge.label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(result, abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score > 0.5) for score in result]
    named = [judgment.rationale for judgment in judged if not judgment.vote]
    assert named
    assert all(rationale.startswith("unsupported (") for rationale in named)


def test_a_batch_says_what_single_examples_say(judge):
    """Neither padding nor company changes a score."""
    examples = [Example(source, claim, "1") for source in (SOURCE, "Rain fell.") for claim in CLAIMS]
    alone = [judge.label(example).score for example in examples]
    assert [judgment.score for judgment in judge.label_many(examples)] == pytest.approx(alone, abs=1e-5)


def test_names_and_settings_make_the_judge_again(judge, folders):
    """The column says the way, the version and the model; options find it by its way."""
    assert isinstance(judge, Judge)
    folder = folders[judge.name]
    assert judge.voter() == f"{judge.name}@{judge.version[:8]}/{folder.name}"
    again = load_again(judge.name, str(folder), dict(judge.details["settings"]))
    assert again.version == judge.version
    assert load_named_encoder(f"{judge.name}:mine={folder}").voter().endswith("/mine")
    (asked,) = judges_of("encoder", [f"{judge.name}:{folder}"])
    assert asked.voter() == judge.voter()


def test_texts_that_cannot_be_judged(judge):
    """No words give no vote; numbers that are none give `failed`."""
    assert judge.label(Example(" ", "Noon.", "1")).reason == "abstained"
    assert judge.label(Example(SOURCE, "\n", "1")).reason == "abstained"
    with torch.no_grad():
        for weight in judge.network.model.parameters():
            weight.fill_(float("nan"))
    result = judge.label(Example(SOURCE, "Noon.", "1"))
    assert (result.vote, result.reason) == (ABSTAIN, "failed")


def test_a_claim_that_leaves_no_room_is_truncated(folders):
    """Nothing is cut off in silence."""
    judge = load_lettucedetect(folders["lettucedetect"])
    assert judge.label(Example(SOURCE, "a" * 220, "1")).reason == "truncated"
    whole = load_hhem(folders["hhem"], max_tokens=100)
    assert [whole.label(Example(text, "Noon.", "1")).reason for text in (SOURCE, SOURCE * 2)] == [None, "truncated"]


def test_the_trained_head_counts_in_the_version(tmp_path):
    """Other weights of AlignScore or of the convolution make another judge, in another column."""
    for save, name, load in (
        (save_alignscore, "AlignScore-base.ckpt", load_alignscore),
        (save_summac_conv, "summac_conv_vitc_sent_perc_e.bin", load_summac_conv),
    ):
        folder = save(tmp_path / load.__name__)
        before, held = load(folder).version, torch.load(folder / name, weights_only=True)
        layer = held["state_dict"]["tri_layer.bias"] if "state_dict" in held else held["layer_final.bias"]
        layer += 1
        torch.save(held, folder / name)
        assert load(folder).version != before


def test_a_checkpoint_runs_no_code(folders, tmp_path):
    """A pickle that would call something is refused in one line, and nothing is called."""

    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harm",))

    folder = shutil.copytree(folders["alignscore"], tmp_path / "bad")
    torch.save({"state_dict": Harm()}, folder / "AlignScore-base.ckpt")
    with pytest.raises(InputError, match=r"only tensors in AlignScore-base.ckpt. Got 'bad'.*AlignScore-base.safetens"):
        load_alignscore(folder)
    assert not (tmp_path / "harm").exists()


def test_what_cannot_be_loaded_is_one_line(folders, tmp_path):
    """Each loader names what it wants."""
    sized = save_summac_conv(tmp_path / "sized", n_bins=46)
    other = shutil.copytree(folders["summac-zs"], tmp_path / "other")
    shutil.copy(folders["alignscore"] / "AlignScore-base.ckpt", other)
    nli, tagger, t5 = folders["summac-zs"], folders["lettucedetect"], folders["minicheck"]
    two = save_classifier(tmp_path / "two", ("not_entailment", "entailment"))
    for load, folder, message in (
        (load_summac, two, "a label for contradiction. Got 'two'"),
        (load_minicheck, nli, "two labels, unsupported and supported. Got 3"),
        (load_minicheck, tagger, "must hold a sequence-classification model"),
        (load_lettucedetect, t5, "must hold a token-classification model"),
        (load_lettucedetect, save_tagger(tmp_path / "three", ("a", "b", "c")), "two labels per token"),
        (load_alignscore, nli, "holds AlignScore*.safetensors or AlignScore*.ckpt beside"),
        (load_alignscore, other, "the config.json of their RoBERTa. Got 'other'"),
        (load_summac_conv, nli, "holds summac_conv*.safetensors or summac_conv*.bin beside"),
        (load_summac_conv, sized, "of 23 or 50 bins of P(entailment). Got 'summac_conv_vitc_sent_perc_e.bin' with"),
        (load_hhem, nli, "must hold HHEM's config.json, whose prompt has {text1} and {text2}"),
    ):
        with pytest.raises(InputError, match=re.escape(message)) as error:
            load(folder)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="`foundation` must be a T5 with its configuration"):
        load_hhem(folders["hhem"], foundation=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"`threshold` must lie in \[-1, 1\]"):
        load_summac(nli, threshold=1.5)
