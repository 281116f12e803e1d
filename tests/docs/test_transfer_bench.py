"""`benchmarks/transfer.py`: measures on votes and on simulated worlds, and refusals."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from deep.datasets import published_datasets, published_points, simulate_votes
from deep.experiments.few_datasets import StudyPanel, draws_of, few_labels, labeled_lines, summarize_labeled
from deep.model import HeldOutRows, PriorEstimate, Scores, learn_misfit

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from transfer import main
from transfer_report import summarize
from transfer_worlds import PATTERNS, WORLDS, transfer_in, true_tables

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow


@pytest.fixture
def quick(monkeypatch):
    """Leave the slow ensemblers out of the paper's recipe."""
    monkeypatch.setattr("transfer_target.PAPER_ENSEMBLERS", ("LogisticRegression",))
    monkeypatch.setattr("deep.experiments.few_datasets.PAPER_ENSEMBLERS", ("LogisticRegression",))


def write_votes(path, *, n=200, n_datasets=5, seed=0):
    """Write votes and scores of datasets whose priors differ; return the frame of votes."""
    rng = np.random.default_rng(seed)
    frames, scores = [], []
    for d in range(n_datasets):
        label = (rng.random(n) < 0.25 + 0.5 * d / (n_datasets - 1)).astype(int)
        latent = (2 * label - 1)[:, None] * [1.2, 0.9, 0.6, 0.4] + rng.normal(size=(n, 4)) + rng.normal(0, 0.2)
        frame = pd.DataFrame({"dataset": f"d{d}", "item_id": [f"i{k}" for k in range(n)], "label": label})
        frames.append(frame.join(pd.DataFrame((latent > 0).astype(int), columns=list("vwxz"))))
        scores.append(frame[["dataset", "item_id"]].join(pd.DataFrame(latent, columns=list("vwxz"))))
    votes = pd.concat(frames)
    votes.to_csv(path / "votes.csv", index=False)
    pd.concat(scores).to_csv(path / "scores.csv", index=False)
    return votes.reset_index(drop=True)


@pytest.mark.usefixtures("quick")
def test_every_dataset_is_held_out_and_measured(tmp_path, capsys):
    """Each method has its figures on each dataset, the files hold them, and labels of 100 items help."""
    write_votes(tmp_path)
    files = ["--votes", str(tmp_path / "votes.csv"), "--scores", str(tmp_path / "scores.csv")]
    assert main([*files, "--draws", "3", "--jobs", "1", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [one["dataset"] for one in results["targets"]] == ["d0", "d1", "d2", "d3", "d4"]
    assert set(results["targets"][0]["few_labels"]) == {"5", "10", "20", "50", "100"}
    assert results["summary"]["labeled"]["100"]["balanced_accuracy"] > 0.7
    assert results["summary"]["labeled"]["5"]["n_datasets"] == 5
    assert "draws flagged by the canary" in out
    assert results["summary"]["few_labels"]["100"] < results["summary"]["methods"]["deep"]["ece"]
    assert results["summary"]["methods"]["best_judge_context"]["ece"] < 0.3
    assert results["summary"]["methods"]["best_judge_learned_threshold"]["balanced_accuracy"] > 0.7
    assert (tmp_path / "out" / "results.md").read_text() in out
    assert "### Weights of the stack's members" in out
    assert out.endswith(f"report: open {tmp_path / 'out' / 'report.html'}\n")
    assert "Weights of the stack" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert sum(results["targets"][0]["weights"].values()) == pytest.approx(1, abs=1e-3)


def test_draws_never_train_on_the_target():
    """Each target in turn, with as many others as asked for; the same seed gives the same draws."""
    votes = simulate_votes(0)
    draws = draws_of([StudyPanel("simulated", votes)], [2, 5, "all"], 8, 0)
    assert draws == draws_of([StudyPanel("simulated", votes)], [2, 5, "all"], 8, 0)
    assert all(draw.target not in draw.others for draw in draws)
    assert {(draw.k, len(draw.others)) for draw in draws} == {(2, 2), ("all", 3)}
    assert [draw.target for draw in draws if draw.k == 2] == 2 * list(votes.dataset_names)


@pytest.mark.parametrize("n", [80, 100])
def test_more_labels_than_half_of_a_dataset_are_not_tried(n):
    """As many labels as there are rows, or more, leave nothing to measure on: that number has no figure."""
    p = np.linspace(0.1, 0.9, n)
    result = Scores(logit(p), PriorEstimate(0.5, 0.3, 0.7), learn_misfit([rows(p), rows(p[::2])]))
    y = (np.random.default_rng(0).random(n) < p).astype(np.int8)
    options = {"n_draws": 2, "n_bins": 8, "random_state": 0}
    given = few_labels(y, result.p_consistent, result.prior, result.misfit, **options)
    assert given["labeled"]["100"] is None
    errors = given["few_labels"]
    assert errors["100"] is None
    assert (errors["50"] is None) == (n < 100)
    assert 0 < errors["20"] < 1


def test_a_rest_of_one_class_has_no_balanced_accuracy():
    """One consistent item in 40: draws that label it are left out of the mean; where no draw has one, there is none."""
    p = np.linspace(0.1, 0.9, 40)
    prior, misfit = (
        PriorEstimate(
            0.5,
            0.3,
            0.7,
        ),
        learn_misfit([rows(p)]),
    )
    options = {"n_draws": 30, "n_bins": 8, "random_state": 0}
    for y, known in ((np.arange(40) == 39, True), (np.zeros(40), False)):
        given = few_labels(y.astype(np.int8), p, prior, misfit, **options)["labeled"]["20"]
        assert (given["balanced_accuracy"] is not None) == known
        assert given["flagged"] is not None
        summary = summarize_labeled([{"labeled": {"20": given}}])
        assert (summary["20"]["balanced_accuracy"] is not None) == known


def test_labels_of_a_dataset_that_the_model_misreads_correct_it_and_are_flagged():
    """Labels turned round: the canary finds ten of them; a hundred take the calibration error down."""
    p = np.tile(np.linspace(0.05, 0.95, 100), 8)
    prior, misfit = PriorEstimate(0.5, 0.3, 0.7), learn_misfit([rows(p), rows(p[::2])])
    y = (np.random.default_rng(0).random(800) > p).astype(np.int8)
    given = few_labels(y, p, prior, misfit, n_draws=10, n_bins=8, random_state=0)
    assert given["labeled"]["10"]["flagged"] >= 0.9
    assert given["few_labels"]["100"] < 0.6 * given["few_labels"]["5"]
    target = {"dataset": "a", **given}
    summary = summarize_labeled([target, target | {"dataset": "b"}])
    assert summary["20"]["mean of the labels: covered"] == given["labeled"]["20"]["mean of the labels: covered"]
    text = "\n".join(labeled_lines([target], summary))
    assert "| a |" in text
    assert "Rogan-Gladen" in text


def rows(p):
    """Return a dataset left out, whose labels follow P."""
    return HeldOutRows(logit(p), p, 1 - p, np.arange(len(p)))


@pytest.mark.usefixtures("quick")
def test_the_held_out_labels_are_not_looked_at(tmp_path, capsys):
    """With the labels of one dataset turned round, its estimated prior and the weights stay."""
    votes = write_votes(tmp_path)
    result = []
    turned = votes["label"].where(votes["dataset"] != "d1", 1 - votes["label"])
    for name, frame in (("a", votes), ("b", votes.assign(label=turned))):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        words = ["--votes", str(tmp_path / f"{name}.csv"), "--draws", "1", "--jobs", "1", "--json"]
        assert main([*words, "--out", str(tmp_path / name)]) == 0
        result.append(json.loads(capsys.readouterr().out)["targets"][1])
    assert result[0]["prior"]["estimate"] == result[1]["prior"]["estimate"]
    assert result[0]["weights"] == result[1]["weights"]
    assert result[0]["consistent"] == pytest.approx(1 - result[1]["consistent"])


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_worlds_keep_the_published_rates(name):
    """In every simulated world each voter has about its published TPR and TNR, as far as ambiguous items allow."""
    tables = true_tables(WORLDS[name])
    for dataset in published_datasets():
        truth = tables[dataset.name]
        assert truth.sum() == pytest.approx(1.0)
        assert truth[:, 1].sum() == pytest.approx(dataset.n_consistent / dataset.n_items)
        points = [p for p in published_points() if p.model == WORLDS[name].model and p.dataset == dataset.name]
        for voter, point in enumerate(sorted(points, key=lambda p: p.prompt)):
            tpr = truth[PATTERNS[:, voter] == 1, 1].sum() / truth[:, 1].sum()
            assert tpr == pytest.approx(point.tpr, abs=0.1 if "ambiguous" in name else 1e-3)


@pytest.mark.usefixtures("quick")
def test_nothing_beats_the_truth():
    """On the exact distribution, no method has a lower log loss or a higher balanced accuracy than the truth."""
    for one in transfer_in("unequal", 0):
        bayes = one["methods"]["bayes"]
        assert bayes["ece"] == pytest.approx(0, abs=1e-9)
        for figures in one["methods"].values():
            assert figures["log_loss"] >= bayes["log_loss"] - 1e-12
            assert figures["balanced_accuracy"] <= bayes["balanced_accuracy"] + 1e-12


def test_intervals_of_means_are_those_of_students_t():
    """Over three datasets by hand: a mean of 2 points, and 4.303 standard errors of 1 / sqrt(3) on either side."""
    prior = {"estimate": 0.5, "interval": [0.4, 0.6], "covered": True, "warning": None}
    targets = []
    for gain in (0.01, 0.02, 0.03):
        other = {"balanced_accuracy": 0.7, "ece": None, "ece_floor": None, "log_loss": None}
        stack = {"balanced_accuracy": 0.7 + gain, "ece": 0.1, "ece_floor": 0.02, "log_loss": 0.5}
        targets.append(
            {
                "dataset": "a",
                "methods": dict.fromkeys(("paper", "platt"), stack) | {"deep": stack, "best_judge": other},
                "prior": prior,
                "consistent": 0.5,
                "cells": {"n": 0, "covered": None},
                "few_labels": {},
                "labeled": {},
            }
        )
    result = summarize(targets)["deep_minus"]["best_judge"]
    reach = 4.302653 * 0.01 / 3**0.5
    assert result["balanced_accuracy"] == pytest.approx([0.02, 0.02 - reach, 0.02 + reach])
    assert result["ece"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`votes` must name at least one table, or --simulated be given. Got neither."),
        (["--simulated", "--votes", "x.csv"], "`simulated` must be given without --votes"),
        (["--simulated", "--draws", "0"], "`draws` must be 1 or more. Got 0."),
        (["--simulated", "--seed", "-1"], "`seed` must be from 0 to 4294967295. Got -1."),
        (["--simulated", "--seed", "4294967296"], "`seed` must be from 0 to 4294967295. Got 4294967296."),
        (["--simulated", "--jobs", "0"], "`jobs` must be at least 1"),
        (["--votes", "absent.csv"], "absent.csv"),
        (["--votes", "absent.csv", "--training-datasets", "none"], "`few` must be numbers of at least 1"),
        (["--votes", "one.csv", "--training-datasets", "1"], "`votes` must hold a table of two datasets or more"),
    ],
)
def test_faults_are_one_line(words, message, tmp_path, monkeypatch, capsys):
    """A fault prints one line and writes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("dataset,item_id,label,a,b\nx,1,1,1,0\nx,2,0,0,0\n")
    assert main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["one.csv"]


@pytest.mark.parametrize("more", [[], ["--training-datasets", "1", "all"]])
def test_a_dataset_of_one_class_is_left_out_and_named(more, tmp_path, monkeypatch, capsys, undrawn):
    """There is no balanced accuracy on it; with one dataset besides there is nothing to measure, which is an error."""
    monkeypatch.chdir(tmp_path)
    votes = write_votes(tmp_path, n=40, n_datasets=3).reset_index(drop=True)
    votes.loc[votes["dataset"] == "d1", "label"] = 1
    votes.to_csv("votes.csv", index=False)
    assert main(["--votes", "votes.csv", "--draws", "2", "--jobs", "1", *more]) == 0
    assert "Left out, for their labels are all 0 or all 1: d1." in capsys.readouterr().out
    results = json.loads((tmp_path / "runs/transfer/results.json").read_text())
    assert results["left_out"] == ({"votes.csv": ["d1"]} if more else ["d1"])
    if not more:
        assert [target["dataset"] for target in results["targets"]] == ["d0", "d2"]
    votes.loc[votes["dataset"] == "d2", "label"] = 0
    votes.to_csv("votes.csv", index=False)
    assert main(["--votes", "votes.csv", *more]) == 2
    assert "in at least two datasets, one to test on and one to train on. Got all 0 or all 1 in d1, d2." in (
        capsys.readouterr().err
    )
