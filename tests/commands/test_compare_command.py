"""`deep panel compare` against figures worked out by hand, and what it cannot measure."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_votes
from deep.evaluate import ensemble_votes
from deep.experiments.cognibench import verdicts_by_item
from deep.experiments.stages import stage_table
from tests.deep_commands import cognibench, fit
from tests.deep_commands import compare as main


def table(path, rows, voters=("a", "b")):
    """Write a vote file; a row is dataset, item, label, document and a vote a voter."""
    lines = [",".join(["dataset", "item_id", "label", "document_id", *voters])]
    path.write_text("\n".join([*lines, *(",".join(map(str, row)) for row in rows), ""]), encoding="utf-8")
    return str(path)


@pytest.fixture
def votes(tmp_path):
    """Return a file with items of DEEP's first set, of FECT and of PROBE."""
    xsum = [(1, 1, 0), (1, 1, 1), (1, 0, 1), (0, 0, 0), (0, 1, "")]
    fect = [(1, 1, 1), (1, 0, 1), (0, 0, 1), (0, 0, ""), (0, 1, 0)]
    probe = [(0, 1, 1), (0, 0, 1), (1, 0, 1), (1, 1, ""), (3, 0, 0), (3, 0, 1)]
    rows = [("aggrefact-xsum", i, label, f"x{i}", a, b) for i, (label, a, b) in enumerate(xsum)]
    rows += [("fect", i, label, f"f{i}", a, b) for i, (label, a, b) in enumerate(fect)]
    rows += [("probe-summarization", f"t{i}/{c}", int(c == 0), f"t{i}", a, b) for i, (c, a, b) in enumerate(probe)]
    return table(tmp_path / "votes.csv", rows)


def test_every_figure_is_the_one_worked_out_by_hand(votes, tmp_path, capsys):
    """Balanced accuracy, F1, false alarms and recall; items without a vote are called nothing."""
    out = tmp_path / "out"
    assert main([votes, "--out", str(out), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    found = {(f["judge"], f["stage"], f["part"]): f for f in results["figures"]}
    assert found["a", "DEEP", "aggrefact-xsum"]["value"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["b", "DEEP", "aggrefact-xsum"]["value"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["b", "DEEP", "aggrefact-xsum"]["coverage"] == pytest.approx(4 / 5)
    assert found["a", "FECT", ""]["value"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert found["b", "FECT", ""]["value"] == pytest.approx(2 * 1 / (2 * 1 + 0 + 1))
    called = {part: found["a", "PROBE", part]["value"] for part in ("complexity 0", "complexity 1", "complexity 3")}
    assert called == {"complexity 0": 0.5, "complexity 1": 0.5, "complexity 3": 1.0}
    assert found["b", "PROBE", "complexity 1"]["value"] == 0
    assert found["b", "PROBE", "complexity 0"]["metric"] == "false alarms"
    missing = {one["what"]: one["why"] for one in results["not_measured"]}
    assert "no votes on the dataset tofueval-mediasum" in missing["DEEP tofueval-mediasum"]
    assert missing["PROBE complexity 2"] == "no votes on responses of that complexity"
    assert json.loads((out / "results.json").read_text(encoding="utf-8")) == results
    wide = pd.read_csv(out / "judges-by-stage.csv", index_col="judge", dtype=str)
    assert wide.loc["a", "DEEP aggrefact-xsum balanced accuracy"] == "58.3"
    assert wide.loc["a", "FECT F1"] == "66.7"
    assert "| b | 83.3 | 66.7 |" in (out / "report.md").read_text(encoding="utf-8")


def test_cognibench_is_measured_by_tier(data_home, tmp_path, monkeypatch, capsys):
    """A turn is what its worst sentence is; a judge that follows the verdicts has recall 1 and no false alarms."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    verdicts = verdicts_by_item()
    turns = {item: verdict for item, verdict in verdicts.items() if "#" not in item}
    assert len(turns) <= 136
    assert {"invented", "speculative"} <= set(turns.values())
    bad = ("invented", "misleading", "speculative")
    rows = [("cognibench", item, "", item, int(verdict not in bad), 0) for item, verdict in turns.items()]
    path = table(tmp_path / "votes.csv", rows, ("right", "never"))
    assert main([path, "--json", "--n-boot", "50"]) == 0
    found = {(f["judge"], f["part"]): f["value"] for f in json.loads(capsys.readouterr().out)["figures"]}
    for verdict in set(turns.values()):
        assert found["right", verdict] == (verdict in bad)
        assert found["never", verdict] == 1.0


def test_sentences_of_cognibench_are_judged_one_by_one(data_home, tmp_path, monkeypatch, capsys):
    """1,237 of them; a judge that has a vote on none of them has no figure and a reason."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    path = tmp_path / "sentences.jsonl"
    assert cognibench(["export-sentences", "--data", "cognibench", "--out", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 783 + 454
    assert {line["label"] for line in lines} == {0, 1}
    rows = [("cognibench", line["example_id"], "", line["document_id"], line["label"], "") for line in lines]
    rows.append(("news", 1, 1, "n", 1, 1))
    capsys.readouterr()
    assert main([table(tmp_path / "v.csv", rows, ("right", "silent")), "--json", "--n-boot", "20"]) == 0
    results = json.loads(capsys.readouterr().out)
    found = {(f["judge"], f["part"]): (f["value"], f["items"]) for f in results["figures"]}
    assert [found["right", verdict][0] for verdict in ("invented", "speculative", "reliable", "faithful")] == [
        1,
        1,
        0,
        0,
    ]
    assert sum(found["right", part][1] for judge, part in found if judge == "right") == len(lines)
    assert found["silent", "invented"][0] is None
    reasons = {one["what"]: one["why"] for one in results["not_measured"]}
    assert reasons["silent at CogniBench invented recall"] == "no vote on its items"


def test_a_model_is_measured_where_it_was_not_trained(votes, tmp_path, capsys):
    """By both rules; at a dataset of its training it is named with the reason, and so is one without its voters."""
    rows = []
    for name in ("aggrefact-xsum", "other"):
        rows += [(name, f"n{i}", i % 2, f"{name}{i}", (i % 2) if i % 9 else 1 - i % 2, i % 3 % 2) for i in range(60)]
    train = table(tmp_path / "train.csv", rows)
    assert fit(["--out", str(tmp_path / "mine.json"), train]) == 0
    absent = table(tmp_path / "c.csv", rows, ("c", "d"))
    assert fit(["--out", str(tmp_path / "lost.json"), absent]) == 0
    capsys.readouterr()
    assert main([votes, str(tmp_path / "mine.json"), str(tmp_path / "lost.json"), "--json", "--n-boot", "50"]) == 0
    results = json.loads(capsys.readouterr().out)
    stages = {(f["judge"], f["stage"]) for f in results["figures"]}
    for rule in ("P at 0.5", "P at prior"):
        assert (f"mine ({rule})", "FECT") in stages
        assert (f"mine ({rule})", "DEEP") not in stages
    missing = {one["what"]: one["why"] for one in results["not_measured"]}
    assert (
        missing["mine (P at 0.5) at DEEP aggrefact-xsum balanced accuracy"] == "the model was trained on that dataset"
    )
    assert missing["lost"] == "2 of its 2 voters are in no vote file, 'c' first"


def test_labels_come_from_the_benchmark_where_the_votes_have_none(data_home, tmp_path, monkeypatch):
    """FECT's own labels give a judge that is always right an F1 of 1."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    from deep.datasets import read_examples

    known = [(example.example_id, example.label) for example in read_examples("fect")]
    rows = [("fect", item, "", item, label, 1) for item, label in known]
    found = stage_table([table(tmp_path / "v.csv", rows)], n_boot=20)
    by_judge = found.figures.set_index("judge")
    assert by_judge.loc["a", "value"] == 1.0
    assert by_judge.loc["a", "items"] == 410
    assert by_judge.loc["b", "value"] == 0.0


def test_what_is_undefined_or_rare_is_said(tmp_path, capsys):
    """A judge without a vote has no figure and a reason; one that seldom votes has its share behind the figure."""
    rows = [("fect", i, i % 2, i, "", i % 2 if i < 4 else "") for i in range(20)]
    assert main([table(tmp_path / "v.csv", rows), "--n-boot", "50"]) == 0
    said = capsys.readouterr().out
    assert "| a | - |" in said
    assert "| b | 100.0 (20 % of items) |" in said
    assert "- a at FECT F1: no vote on its items" in said


def test_intervals_are_over_documents(tmp_path):
    """Items of one document do not count as if they were apart."""
    rng = np.random.default_rng(3)
    draws = [(doc, item, rng.random() < 0.5) for doc in range(20) for item in range(10)]
    right = {doc: rng.random() < 0.7 for doc in range(20)}
    reach = []
    for document in ("{doc}", "{doc}-{item}"):
        rows = [
            ("fect", f"{doc}-{item}", int(label), document.format(doc=doc, item=item), int(label == right[doc]), 1)
            for doc, item, label in draws
        ]
        figure = stage_table([table(tmp_path / "v.csv", rows)]).figures.set_index("judge").loc["a"]
        assert figure["low"] < figure["value"] < figure["high"]
        reach.append(figure["high"] - figure["low"])
    assert reach[0] > 2 * reach[1]


def test_ensembles_without_labels_are_judges(tmp_path):
    """The majority of three is what two say; it is fitted to each dataset by itself, and labels change nothing."""
    said = [(1, 1, 0), (0, 0, 1), (1, "", 1), (0, 1, ""), ("", "", "")] * 4
    rows = [("fect", i, i % 2, i, *votes) for i, votes in enumerate(said)]
    path = table(tmp_path / "v.csv", rows, ("a", "b", "c"))
    found = stage_table([path], ensemblers=["MajorityLabelVoter", "LabelModel"], n_boot=20).figures.set_index("judge")
    majority = {0: 1, 1: 0, 2: 1}
    counts = [(majority[i % 5], i % 2) for i in range(20) if i % 5 in majority]
    hit, false, miss = (sum(pair == wanted for pair in counts) for wanted in ((0, 0), (0, 1), (1, 0)))
    assert found.loc["MajorityLabelVoter of 3", "value"] == pytest.approx(2 * hit / (2 * hit + false + miss))
    assert found.loc["MajorityLabelVoter of 3", "coverage"] == pytest.approx(12 / 20)
    other = table(
        tmp_path / "w.csv", [(d, i, 1 - label, doc, *votes) for d, i, label, doc, *votes in rows], ("a", "b", "c")
    )
    flipped = ensemble_votes(read_votes(other), ["LabelModel"]).votes
    assert (flipped == ensemble_votes(read_votes(path), ["LabelModel"]).votes).all()


@pytest.mark.slow
def test_intervals_cover(tmp_path):
    """95 % intervals of F1 hold the true value about as often as they say, over 150 samples."""
    rng = np.random.default_rng(0)
    hit, alarm, share, n = 0.7, 0.2, 0.4, 200
    true = 2 * share * hit / (share * hit + (1 - share) * alarm + share)
    held = 0
    for seed in range(150):
        bad = rng.random(n) < share
        called = rng.random(n) < np.where(bad, hit, alarm)
        rows = [("fect", i, int(not b), i, int(not c), 1) for i, (b, c) in enumerate(zip(bad, called, strict=True))]
        found = stage_table([table(tmp_path / "v.csv", rows)], n_boot=300, random_state=seed)
        figure = found.figures.set_index("judge").loc["a"]
        held += figure["low"] <= true <= figure["high"]
    assert 0.89 <= held / 150 <= 0.99


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["m.json"], "`files` must hold at least one table of votes; models are measured on them. Got none."),
        (["VOTES", "--cognibench", "nowhere"], "`data` must be a folder or cognibench. Got 'nowhere'."),
        (["VOTES", "--n-boot", "0"], "`n_boot` must be 1 or more. Got 0."),
        (["VOTES", "nowhere.json"], "nowhere.json"),
        (["VOTES", "--ensembler", "SVC"], "`ensembler` must be one of DawidSkene, LabelModel, MajorityLabelVoter."),
    ],
)
def test_what_cannot_be_done_is_one_line(words, message, votes, capsys):
    """Status 2."""
    assert main([votes if word == "VOTES" else word for word in words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_nothing_to_measure_is_said(tmp_path, capsys):
    """Votes on other datasets leave reasons alone."""
    path = table(tmp_path / "v.csv", [("news", 1, 1, 1, 1, 0)])
    assert main([path, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Nothing can be measured." in said
    assert said.count("\n- ") == 7
