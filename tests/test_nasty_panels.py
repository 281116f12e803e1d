"""`loo`, `fit` and `score` on tables that are odd in every way: a result, or one line that says why not."""

import json
import math
import re
from html.parser import HTMLParser

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
    message = capsys.readouterr()
    assert status in (0, 2), message.err
    if status == 2:
        assert message.err.startswith("error: `")
        assert message.err.count("\n") == 1, message.err
        assert "Traceback" not in message.err
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


def test_loo(votes, tmp_path, capsys, undrawn):
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
    assert main(["panel", str(path), "--no-worth", "--n-boot", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out, parse_constant=lambda text: pytest.fail(text))
    assert all(math.isfinite(number) for number in numbers(result))
    assert len(result["cards"]) == len(result["judges"])


class Elements(HTMLParser):
    """The elements of a page by tag, and its embedded data.

    Void elements aside, every element is closed in the order in which it was opened.
    """

    def __init__(self, page):
        super().__init__()
        self.open, self.counts, self.data, self.text = [], {}, "", []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        """Count an element that runs nothing, and open it."""
        self.counts[tag] = self.counts.get(tag, 0) + 1
        assert not [name for name, _ in attrs if name.startswith("on")], attrs
        if tag not in ("meta", "link", "br"):
            self.open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag, attrs):
        """Open and close an element."""
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "link", "br"):
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        """Close the element that was opened last."""
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        """Keep the items, and what a reader reads; the names in a picture are glyphs."""
        inside = self.open[-1] if self.open else ("", None)
        if inside == ("script", "items-data"):
            self.data += data
        elif inside[0] not in ("script", "style", "text"):
            self.text.append(data)


def check_page(path, panel_name):
    """Check that a page is whole, holds no markup but its own, no NaN, and no item whose P or bound is 0 or 1."""
    page = Elements(path.read_text(encoding="utf-8"))
    assert page.counts["script"] == 2
    assert not page.counts.keys() & {"img", "iframe", "object", "embed"}
    items = json.loads(page.data, parse_constant=lambda text: pytest.fail(text))
    chances = [p for column in ("p", "low", "high") for p in items.get(column, []) if p is not None]
    assert all(0 < p < 1 for p in chances)
    for text in page.text:
        # A dataset and a voter of that panel are called nan.
        assert panel_name == "names that look like numbers" or not re.search(
            r"(?i)\b(nan|[-+]?inf|infinity)\b", text
        ), text
        assert not re.search("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text), text


QUICK = (
    "all abstain",
    "names that look like numbers",
    "no label anywhere",
    "voters that look like markup",
)
"""Panels of few rows, each odd in another way."""


@pytest.mark.parametrize("votes", QUICK, indirect=True)
def test_report(votes, tmp_path, capsys):
    """Of votes with their labels beside them: a whole page, or one line."""
    path, _ = votes
    if run(["report", path, "--out", tmp_path / "report.html"], capsys):
        check_page(tmp_path / "report.html", path.stem)


@pytest.mark.slow
def test_report_of_everything(votes, tmp_path, capsys, monkeypatch):
    """Of votes with labels apart from them, of a model with and without votes, and of a run: a whole page, or one line.

    So is the card of every judge with what each adds.
    """
    monkeypatch.setattr("deep.experiments.loo.write_figures", lambda *args, **kwargs: None)
    path, target = votes
    out, model, folder = tmp_path / "report.html", tmp_path / "model.json", tmp_path / "loo"
    sources = [[path], [path, "--labels", path, "--people", "label"]]
    if run(["fit", path, "--exclude", target, *SMALL, "--out", model], capsys):
        sources += [[model], [model, path]]
    if run(["loo", "--test", target, "--votes", path, *SMALL, "--n-boot", "100", "--out", folder], capsys):
        check_page(folder / "report.html", path.stem)
        sources += [[folder]]
    for source in sources:
        if run(["report", *source, "--out", out], capsys):
            check_page(out, path.stem)
    if path.stem not in SLOW:
        run(["panel", path, "--n-boot", "5"], capsys)
