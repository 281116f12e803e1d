"""`loo`, `fit`, `score` and `transfer` on tables that are odd in every way: a result, or one line that says why not."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from deep.cli import main
from tests.nasty_panels import PANELS

SMALL = ["--sizes", "3", "--ensembler", "LogisticRegression", "--jobs", "1"]


def numbers(value):
    """Yield every number of a JSON document."""
    if isinstance(value, dict):
        for part in value.values():
            yield from numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, float):
        yield value


def check_scores(path):
    """P, where it is there, is a probability that is never 0 or 1; so are its bounds, in order."""
    scores = pd.read_parquet(path)
    p = scores["p_consistent"].to_numpy(dtype=float)
    assert np.isfinite(p).all()
    assert ((p > 0) & (p < 1)).all()
    bounds = scores[["p_low", "p_high"]].to_numpy(dtype=float)
    known = np.isfinite(bounds).all(axis=1)
    assert ((bounds[known] > 0) & (bounds[known] < 1)).all()
    assert (bounds[known, 0] <= bounds[known, 1]).all()


def run(words, capsys):
    """Run a command; return whether it gave a result, having checked that it otherwise said why in one line."""
    status = main([str(word) for word in words])
    said = capsys.readouterr()
    assert status in (0, 2), said.err
    if status == 2:
        assert said.err.startswith("error: `")
        assert said.err.count("\n") == 1, said.err
        assert "Traceback" not in said.err
    return status == 0


SLOW = ("200 voters", "ten thousand datasets")
"""Panels that take longer than all others together."""


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted(PANELS)])
def votes(request, tmp_path):
    """Return the file of one odd panel and its first dataset."""
    frame = PANELS[request.param]()
    path = tmp_path / f"{request.param}.csv"
    frame.to_csv(path, index=False)
    return path, str(frame["dataset"].iloc[0])


def test_loo(votes, tmp_path, capsys):
    """Finite numbers in results.json, and probabilities between 0 and 1."""
    path, target = votes
    made = run(["loo", "--test", target, "--votes", path, *SMALL, "--n-boot", "100", "--out", tmp_path / "loo"], capsys)
    assert made or path.stem not in SLOW
    if made:
        results = json.loads((tmp_path / "loo" / "results.json").read_text(encoding="utf-8"))
        assert all(math.isfinite(number) for number in numbers(results))
        check_scores(tmp_path / "loo" / "scores.parquet")


def test_fit_and_score(votes, tmp_path, capsys):
    """A model that was written scores the whole table, or says in one line what does not fit."""
    path, target = votes
    model, out = tmp_path / "model.json", tmp_path / "scores.parquet"
    if run(["fit", path, "--exclude", target, *SMALL, "--out", model], capsys):
        json.loads(model.read_text(encoding="utf-8"), parse_constant=lambda text: pytest.fail(text))
        if run(["score", model, "--votes", path, "--out", out], capsys):
            check_scores(out)


def test_panel_card(votes, capsys):
    """The card of every judge is JSON with finite numbers; all but what each judge adds, which takes many fits."""
    path, _ = votes
    assert main(["panel", str(path), "--no-worth", "--n-boot", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda text: pytest.fail(text))
    assert all(math.isfinite(number) for number in numbers(found))
    assert len(found["cards"]) == len(found["judges"])


@pytest.mark.slow
def test_transfer(votes, tmp_path, capsys):
    """The study of transfer gives finite numbers, or says why it cannot."""
    path, _ = votes
    if run(["transfer", "--votes", path, "--draws", "3", "--jobs", "1", "--out", tmp_path / "transfer"], capsys):
        results = json.loads((tmp_path / "transfer" / "results.json").read_text(encoding="utf-8"))
        assert all(math.isfinite(number) for number in numbers(results))
