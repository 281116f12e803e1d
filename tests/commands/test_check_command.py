"""`deep check`: what it prints, its status, and how it refuses."""

import json

import pytest

from deep.model import fit
from tests.deep_commands import check as main
from tests.experiments.simulated_panel import NEW, simulated, table


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with a model of five simulated judges, and votes on a dataset it was not fitted on."""
    folder = tmp_path_factory.mktemp("drift")
    votes = simulated()
    new = votes.datasets == NEW
    model = fit(votes.rows(~new), sizes=[5], ensembler="LogisticRegression", calibrator="platt")
    model.save(folder / "model.json")
    table(votes.rows(new), folder / "new.csv")
    return folder


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
