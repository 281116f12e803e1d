"""docs/benchmarks.md says what the JSON of `make peers` says, and the program runs on what is installed."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from deep.datasets import read_votes

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CHEAP = ("wrench", "crowds", "calibrators")


@pytest.fixture
def peers(monkeypatch, data_home):
    """Return the program, which looks for real votes where the tests do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    import peers

    monkeypatch.setattr(peers, "_quiet", lambda: None)
    yield peers
    for name in ("peers", "peers_page", "bench", "bench_page", "measured_page", "unlabeled", "share", "netcal_maps"):
        sys.modules.pop(name, None)


@pytest.fixture
def page():
    """Return the module that renders."""
    sys.path.append(str(BENCHMARKS))
    import peers_page

    yield peers_page
    sys.path.remove(str(BENCHMARKS))
    for name in ("peers_page", "measured_page"):
        sys.modules.pop(name, None)


def read(name):
    """Return a committed run."""
    return json.loads((BENCHMARKS / "peers" / name).read_text(encoding="utf-8"))


def run(peers, monkeypatch, out, *studies):
    """Return what a quick run of studies writes."""
    words = ["peers.py", "--size", "quick", "--jobs", "1", "--out", str(out), "--only", *studies]
    monkeypatch.setattr(sys, "argv", words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert peers.main() == 0
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_page_is_filled_from_the_json(page):
    """`python benchmarks/peers.py --render` would change nothing, and every study was run."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(read("found.json"), read("fbc87a9.json")) == text
    assert "Not measured." not in text
    assert all(f"<!-- peers:{mark} -->" in text for mark in page.tables(read("found.json"), read("fbc87a9.json")))


def test_the_untuned_figures_stand_beside_the_new_ones(page):
    """WRENCH by the commit before any constant was chosen on it, named so, and only that."""
    text = page.PAGE.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {page.UNTUNED}"))
    figures = [one["figures"]["deep"] for one in read("fbc87a9.json")["found"]["wrench"].values()]
    assert [float(cell) for cell in row.split("|")[2:5]] == pytest.approx(np.mean(figures, axis=0), abs=6e-4)
    assert all("fbc87a9" in line for line in text.splitlines() if "never tuned on" in line)


def test_a_quick_run_gives_every_table(peers, monkeypatch, tmp_path):
    """Figures of deep and crowd-kit are those of the votes; differences are those of the figures."""
    result = run(peers, monkeypatch, tmp_path / "found.json", *CHEAP)
    assert set(result["found"]) == set(CHEAP) == set(result["commits"])
    rte = result["found"]["crowds"]["RTE"]["figures"]
    assert rte["crowd-kit DawidSkene"][0] == pytest.approx(0.9275)
    youtube = read_votes([str(peers.data_home() / "wrench" / "youtube.parquet")])
    p = peers.deep_alone(youtube.votes)
    ours = result["found"]["wrench"]["youtube"]
    assert ours["figures"]["deep"] == pytest.approx(peers.losses(p, youtube.labels).mean(axis=1), rel=1e-4)
    gap = ours["figures"]["deep"][1] - ours["figures"]["majority"][1]
    assert ours["less"]["majority"][0][1] == pytest.approx(gap, abs=1e-4)
    assert ours["published"]["HyperLM"][0] == pytest.approx(0.91, abs=1e-3)
    tables = peers.page.__globals__["tables"](result, read("fbc87a9.json"))
    assert tables["share"] == ["Not measured."]
    assert any(line.startswith("| crowd-kit DawidSkene |") for line in tables["wrench"])
    assert any(line.startswith("| netcal-bbq |") for line in tables["calibrators"])


def test_a_quick_run_of_what_takes_labels(peers, monkeypatch, tmp_path):
    """Shares, A against B and P on the smallest panel: deep and the labels alone are always there."""
    result = run(peers, monkeypatch, tmp_path / "found.json", "share", "compare", "p")["found"]
    assert {"deep", "labels alone"} <= set(result["share"]["30"])
    assert {"alarms", "power"} == set(result["compare"])
    assert "logistic regression + Platt" in result["p"]["1"]["css_binary"]


def test_a_peer_that_is_missing_or_refuses_is_no_figure(peers, monkeypatch):
    """Not installed: no row. No number: the mean of the labels counts, and that is said."""

    def missing(p, labels, votes):
        raise ImportError

    def refuses(p, labels, votes):
        raise ValueError

    p, labels = np.full(20, 0.5), np.array([1, 0] * 5 + [-1] * 10)
    monkeypatch.setattr(peers, "SHARES", {"missing": missing, "refuses": refuses, "labels alone": peers.by_labels})
    assert peers.or_labels("missing", p, labels, p) is None
    assert np.isnan(peers.or_labels("refuses", p, labels, p)).all()
    rows = [("panel", "set", "deep", 0.1), ("panel", "set", "refuses", np.nan), ("panel", "set", "labels alone", 0.3)]
    frame = peers.pd.DataFrame(rows, columns=["panel", "dataset", "method", "error"]).assign(held=True, width=0.2)
    result = peers.share_table(frame)
    assert result["refuses"]["rmse"] == pytest.approx(0.3)
    assert result["refuses"]["refused"] == 1
    assert result["deep"]["less"][0] == 0
