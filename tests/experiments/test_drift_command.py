"""`deep drift`: what it prints, its status, and how it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from deep import VoteMatrix
from deep.datasets import simulate_votes
from deep.experiments.drift import main
from deep.model import fit_model, save_model

NEW = "tofueval-mediasum 0"


def simulated():
    """Return simulated votes on twelve datasets: four of the paper's, drawn three times."""
    drawn = [simulate_votes(seed) for seed in range(3)]
    names = [f"{name} {seed}" for seed, votes in enumerate(drawn) for name in votes.datasets]
    return VoteMatrix(
        votes=np.concatenate([votes.votes for votes in drawn]),
        example_ids=np.concatenate([votes.example_ids for votes in drawn]),
        voter_names=drawn[0].voter_names,
        datasets=names,
        labels=np.concatenate([votes.labels for votes in drawn]),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with a model of five simulated judges, and votes on a dataset it was not fitted on."""
    folder = tmp_path_factory.mktemp("drift")
    votes = simulated()
    new = votes.datasets == NEW
    model = fit_model(votes.rows(~new), sizes=[5], ensembler="LogisticRegression", calibrator="platt")
    save_model(model, folder / "model.json")
    table(votes.rows(new), folder / "new.csv")
    return folder


def table(votes, path):
    """Write votes as CSV."""
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names))
    frame.insert(0, "dataset", votes.datasets)
    frame.insert(1, "item_id", votes.example_ids)
    frame.to_csv(path, index=False)


def test_votes_like_the_old_ones(home, capsys):
    """Status 0, and an honest word on what this cannot see."""
    assert main([str(home / "model.json"), "--votes", str(home / "new.csv")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("not stale: 267 new rows\n")
    assert out.endswith("only labels tell.\n")


def test_a_broken_judge_is_named(home, tmp_path, capsys):
    """A judge that says consistent to everything: status 1, named first."""
    votes = simulated()
    votes = votes.rows(votes.datasets == NEW)
    name = json.loads((home / "model.json").read_text())["voters"][0]["name"]
    votes.votes[:, votes.voter_names.index(name)] = 1
    table(votes, tmp_path / "new.csv")
    assert main([str(home / "model.json"), "--votes", str(tmp_path / "new.csv"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["stale"]
    assert found["moved"][0] == name
    assert found["n"] == 267


def test_bad_rate_is_refused(home, capsys):
    """One line, exit 2."""
    assert main([str(home / "model.json"), "--votes", str(home / "new.csv"), "--max-failure-rate", "2"]) == 2
    assert capsys.readouterr().err.startswith("error: `max_failure_rate` must lie in [0, 1]. Got 2.0.")
