"""Votes and a model for tests of the commands around it, and how they refuse."""

import pandas as pd

from tests.deep_commands import fit, score
from tests.model.fitted import small_votes

QUICK = ["--sizes", "3", "--ensembler", "LogisticRegression", "--calibrator", "platt", "--jobs", "1"]
IDS = ["dataset", "item_id", "label"]


def frame_of(votes):
    """Return votes as a table with empty cells for no vote."""
    table = pd.DataFrame(votes.votes, columns=list(votes.voter_names)).astype("Int8").replace(-1, pd.NA)
    known = pd.array(votes.labels, dtype="Int8")
    return pd.DataFrame({"dataset": votes.datasets, "item_id": votes.item_ids, "label": known}).join(table)


def refused(capsys, command, *words):
    """Return the one line that a command refuses with."""
    assert command(list(map(str, words))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: `")
    assert err.count("\n") == 1
    return err


def scored(here, *words, out="s.parquet"):
    """Return the scores that a command writes."""
    path = here / out
    assert score([str(here / "model.json"), "--out", str(path), *map(str, words)]) == 0
    return pd.read_parquet(path) if out.endswith("parquet") else pd.read_csv(path)


def fit_here(folder):
    """Write votes of five judges on four datasets, and a model of three of the judges; return the folder."""
    table = frame_of(small_votes(n_voters=5))
    table.to_parquet(folder / "votes.parquet")
    table.to_csv(folder / "votes.csv", index=False)
    assert fit([str(folder / "votes.parquet"), "--out", str(folder / "model.json"), *QUICK]) == 0
    return folder
