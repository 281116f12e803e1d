"""`deep calibrate`, `label-next`, `select` and `score --prior learned`: from a new dataset to a decision."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.model import fit, load
from tests.deep_commands import calibrate, label_next, score, select
from tests.experiments.simulated_panel import NEW, simulated, table


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder: a model, votes on a new dataset, whole and labeled, and a labeled half of it."""
    folder = tmp_path_factory.mktemp("few")
    votes = simulated()
    new = votes.datasets == NEW
    model = fit(votes.rows(~new), sizes=[5], ensembler="LogisticRegression", calibrator="platt")
    model.save(folder / "model.json")
    fresh = votes.rows(new)
    table(fresh, folder / "new.csv")
    table(fresh, folder / "labeled.csv", labels=True)
    table(fresh.rows(np.arange(len(fresh.labels)) % 2 == 0), folder / "half.csv", labels=True)
    return folder


def run(command, capsys, *words):
    """Run a command with --json, and return what it says."""
    assert command([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_learned_prior_moves_the_scores(home, tmp_path, capsys):
    """Each dataset's P stands at its estimated prior, with an interval that covers the estimate's error."""
    words = home / "model.json", "--votes", home / "new.csv"
    found = run(score, capsys, *words, "--prior", "learned", "--out", tmp_path / "learned.csv")
    prior = found["priors"][NEW]
    assert prior["low"] < prior["estimate"] < prior["high"]
    run(score, capsys, *words, "--prior", str(prior["estimate"]), "--out", tmp_path / "given.csv")
    learned, given = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("learned", "given"))
    np.testing.assert_allclose(learned["p_consistent"], given["p_consistent"], atol=1e-12)
    assert (learned["p_low"] < learned["p_consistent"]).all()
    assert (learned["p_high"] > learned["p_consistent"]).all()


def test_label_next_proposes_what_has_no_label(home, tmp_path, capsys):
    """As many items as asked for, none twice, none that has a label; fewer points off with them than without."""
    words = home / "model.json", "--votes", home / "new.csv", "--n", 30
    for strategy in ("random", "spread", "design"):
        found = run(label_next, capsys, *words, "--strategy", strategy, "--out", tmp_path / "next.csv")
        items = [item["item_id"] for item in found["items"]]
        assert len(set(items)) == 30
        assert found["expected_error_after"] < found["expected_error_before"]
        assert pd.read_csv(tmp_path / "next.csv")["label"].isna().all()


def test_label_next_passes_over_labeled_items(home, capsys):
    """Where every item has a label, none is left."""
    assert label_next([str(home / "model.json"), "--votes", str(home / "labeled.csv")]) == 2
    assert "from 1 to 0, the unlabeled items" in capsys.readouterr().err


def test_calibrate_moves_the_model_to_the_labels(home, tmp_path, capsys):
    """The corrected model is a model like any other: it scores by its table, without a prior of its own to give."""
    words = home / "model.json", "--labels", home / "half.csv", "--votes", home / "new.csv"
    found = run(calibrate, capsys, *words, "--out", tmp_path / "mine.json")
    assert found["correction"]["n_labels"] == found["labels"] == 134
    assert 0 < found["venn_abers_width"] < 1
    model, mine = load(home / "model.json"), load(tmp_path / "mine.json")
    p, q = model.table.p, mine.table.p
    moved = found["correction"]["intercept"] + found["correction"]["slope"] * (
        np.log(p / (1 - p)) + np.log(found["correction"]["prior"] / (1 - found["correction"]["prior"]))
    )
    np.testing.assert_allclose(q, 1 / (1 + np.exp(-moved)), atol=1e-12)
    assert (mine.table.low <= q).all()
    assert (q <= mine.table.high).all()
    run(score, capsys, tmp_path / "mine.json", "--votes", home / "new.csv", "--out", tmp_path / "mine.csv")
    words = [tmp_path / "mine.json", "--votes", home / "new.csv", "--prior", "0.3", "--out", tmp_path / "x.csv"]
    assert score([str(word) for word in words]) == 2
    assert "calibrated on labels of its target" in capsys.readouterr().err


def test_select_says_whether_it_guarantees(home, tmp_path, capsys):
    """With labels a guarantee, without them none; an easy target decides more than a hard one."""
    words = home / "model.json", "--votes", home / "new.csv", "--out", tmp_path / "d.csv"
    easy = run(select, capsys, *words, "--labels", home / "half.csv", "--accuracy", "0.55")
    assert easy["guaranteed"]
    assert easy["labels"] == 134
    assert pd.read_csv(tmp_path / "d.csv")["decision"].notna().sum() == easy["decided"]
    hard = run(select, capsys, *words, "--labels", home / "half.csv", "--accuracy", "0.99")
    assert hard["confidence"] is None
    assert pd.read_csv(tmp_path / "d.csv")["decision"].isna().all()
    none = run(select, capsys, *words, "--accuracy", "0.65")
    assert not none["guaranteed"]
    assert 0 < none["datasets_held"] <= none["datasets"] == 11
    assert select([str(word) for word in words] + ["--accuracy", "0.65"]) == 0
    assert "NOT guaranteed under shift" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (calibrate, ["--labels", "new.csv", "--out", "x.json"], "`labels` must have rows with a label"),
        (calibrate, ["--labels", "half.csv", "--out", "x.txt"], "`out` must end in .json"),
        (label_next, ["--votes", "new.csv", "--n", "1000"], "`n` must be a whole number from 1 to 267"),
        (select, ["--votes", "new.csv", "--accuracy", "1.5"], "`accuracy` must lie strictly"),
        (score, ["--votes", "new.csv", "--prior", "maybe", "--out", "x.csv"], "`prior` must be a number or 'learned'"),
    ],
)
def test_bad_input(command, words, message, home, monkeypatch, capsys):
    """One line, exit 2, nothing written."""
    monkeypatch.chdir(home)
    before = sorted(path.name for path in home.iterdir())
    assert command(["model.json", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert sorted(path.name for path in home.iterdir()) == before
