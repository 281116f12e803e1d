"""SummaC-ZS, MiniCheck, HHEM-2.1 and LettuceDetect, each held to a second computation from its published formula.

Weights are random: what is tested is the arithmetic on the same weights, to 1e-5, not the models' judgment.
"""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

from deep.asking import judges_of
from deep.exceptions import InputError
from deep.features.encoders import (
    ENCODERS,
    load_again,
    load_hhem,
    load_lettucedetect,
    load_minicheck,
    load_network_judge,
    load_summac,
)
from deep.judge import Judge
from deep.records import ABSTAIN, Example
from tests.features.tiny_encoders import save_classifier
from tests.features.tiny_published import PROMPT, save_generator, save_hhem, save_tagger, t5_config

SENTENCES = ["The dam broke.", "Water ran to the town.", "Nobody was hurt.", "Roads are shut until noon."]
SOURCE = " ".join(SENTENCES)
CLAIMS = ["The dam broke.", "Water ran. Some were hurt.", "Roads are shut."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folder of a tiny model for each way."""
    home = tmp_path_factory.mktemp("published")
    return {
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
    found = []
    for claim in CLAIMS:
        by_sentence = []
        for sentence in claim.replace(". ", ".|").split("|"):
            p = torch.stack(
                [softmax(model(**tokenizer(s, sentence, return_tensors="pt")).logits[0]) for s in SENTENCES]
            )
            by_sentence.append(p[:, 2].max() - p[:, 0].max())  # labels: contradiction, neutral, entailment
        found.append(float(torch.stack(by_sentence).mean()))
    judged = load_summac(folder).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(found), abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score >= 0) for score in found]


@torch.no_grad()
def test_minicheck_generator_is_the_published_formula(folders):
    """The first token of T5's answer: softmax over the tokens of 0 and 1."""
    folder = folders["minicheck"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5ForConditionalGeneration.from_pretrained(folder).eval()
    found = []
    for claim in CLAIMS:
        encoded = tokenizer(f"predict: {SOURCE}</s>{claim}", return_tensors="pt")
        ids = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        logits = model(**ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
        found.append(float(softmax(logits[[3, 209]])[1]))
    judged = load_minicheck(folder).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(found), abs=1e-5)


@torch.no_grad()
def test_minicheck_classifier_takes_the_best_chunk(tmp_path):
    """P of the second label, chunk and claim as one text with a separator; the largest over the chunks."""
    folder = save_classifier(tmp_path / "m", ("unsupported", "supported"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    judge = load_minicheck(folder)
    for claim in CLAIMS[::2]:
        room = 64 - len(tokenizer(f"[SEP]{claim}")["input_ids"])
        chunks = judge._cut(SOURCE, room)
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
    found = []
    for claim in CLAIMS:
        encoded = tokenizer(PROMPT.format(text1=SOURCE, text2=claim), return_tensors="pt")
        assert encoded["input_ids"][0, 0] == 0
        states = encoder.eval()(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"])[0][0]
        logits = weights["t5.classifier.weight"] @ states[0] + weights["t5.classifier.bias"]
        found.append(float(softmax(logits)[1]))
    judged = load_hhem(folders["hhem"]).label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(apart(found), abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("max_tokens", [None, 110])
def test_lettucedetect_is_the_published_formula(folders, max_tokens):
    """P(unsupported) of each token of the claim, the largest over the chunks; the worst token decides."""
    folder = folders["lettucedetect"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForTokenClassification.from_pretrained(folder)
    judge = load_lettucedetect(folder, max_tokens=max_tokens)
    found = []
    for claim in CLAIMS:
        n = len(tokenizer(claim, add_special_tokens=False)["input_ids"])
        (chunks,) = {tuple(part for part, _ in judge._pairs(Example(SOURCE, claim, "1"), judge._cut))}
        assert (len(chunks) > 1) == (max_tokens is not None)
        by_chunk = []
        for chunk in chunks:
            prompt = f"Summarize the following text:\npassage 1: {chunk}\noutput:"
            encoded = tokenizer(prompt, claim, return_tensors="pt")
            logits = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits[0]
            by_chunk.append(softmax(logits)[-1 - n : -1, 1])
        found.append(1 - float(torch.stack(by_chunk).amax(dim=0).max()))
    judged = judge.label_many([Example(SOURCE, claim, "1") for claim in CLAIMS])
    assert [judgment.score for judgment in judged] == pytest.approx(found, abs=1e-5)
    assert [judgment.vote for judgment in judged] == [int(score > 0.5) for score in found]
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
    assert load_network_judge(f"{judge.name}:mine={folder}").voter().endswith("/mine")
    (asked,) = judges_of("encoder", [f"{judge.name}:{folder}"])
    assert asked.voter() == judge.voter()


def test_texts_that_cannot_be_judged(judge):
    """No words give no vote; numbers that are none give `failed`."""
    assert judge.label(Example(" ", "Noon.", "1")).reason == "abstained"
    assert judge.label(Example(SOURCE, "\n", "1")).reason == "abstained"
    with torch.no_grad():
        for weight in judge.network.model.parameters():
            weight.fill_(float("nan"))
    found = judge.label(Example(SOURCE, "Noon.", "1"))
    assert (found.vote, found.reason) == (ABSTAIN, "failed")


def test_a_claim_that_leaves_no_room_is_truncated(folders):
    """Nothing is cut off in silence."""
    judge = load_lettucedetect(folders["lettucedetect"])
    assert judge.label(Example(SOURCE, "a" * 220, "1")).reason == "truncated"
    whole = load_hhem(folders["hhem"], max_tokens=100)
    assert [whole.label(Example(text, "Noon.", "1")).reason for text in (SOURCE, SOURCE * 2)] == [None, "truncated"]


def test_what_cannot_be_loaded_is_one_line(folders, tmp_path):
    """Each loader names what it wants."""
    nli, tagger, t5 = folders["summac-zs"], folders["lettucedetect"], folders["minicheck"]
    two = save_classifier(tmp_path / "two", ("not_entailment", "entailment"))
    for load, folder, message in (
        (load_summac, two, "a label for contradiction. Got 'two'"),
        (load_minicheck, nli, "two labels, unsupported and supported. Got 3"),
        (load_minicheck, tagger, "must hold a sequence-classification model"),
        (load_lettucedetect, t5, "must hold a token-classification model"),
        (load_lettucedetect, save_tagger(tmp_path / "three", ("a", "b", "c")), "two labels a token"),
        (load_hhem, nli, "must hold HHEM's config.json, whose prompt has {text1} and {text2}"),
    ):
        with pytest.raises(InputError, match=message.replace("{", r"\{").replace("}", r"\}")) as error:
            load(folder)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="`foundation` must be a T5 with its configuration"):
        load_hhem(folders["hhem"], foundation=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"`threshold` must lie in \[-1, 1\]"):
        load_summac(nli, threshold=1.5)
