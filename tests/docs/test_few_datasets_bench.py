"""`benchmarks/few_datasets.py` and its rival of thirty lines: deep's log loss is not above theirs on the same files."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_votes, simulate_votes
from deep.experiments.few_datasets import StudyPanel, draws_of
from deep.model import AcrossPanels

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import few_datasets as bench
import few_targets as targets
from thirty_lines import thirty_lines

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

DATA = Path(os.environ.get("DEEP_DATA_HOME", Path(__file__).resolve().parents[3] / "shared" / "data"))
REAL = {"alttest": "votes.parquet", "css_binary": "votes.parquet", "summeval_llm": "votes_ge5.csv"}


def write_panel(folder, name="css_binary", *, n=150, shares=(0.3, 0.5, 0.6, 0.7), seed=0):
    """Write a panel of four judges, lenient in its own way on each dataset; return its path."""
    rng = np.random.default_rng(seed)
    frames = []
    for d, share in enumerate(shares):
        label = (rng.random(n) < share).astype(int)
        latent = (2 * label - 1)[:, None] * [1.2, 0.9, 0.6, 0.4] + rng.normal(size=(n, 4)) + rng.normal(0, 0.4)
        votes = pd.DataFrame((latent > 0).astype(int), columns=list("vwxz"))
        frames.append(pd.DataFrame({"dataset": f"d{d}", "item_id": range(n), "label": label}).join(votes))
    (folder / name).mkdir()
    path = folder / name / "votes.parquet"
    pd.concat(frames, ignore_index=True).astype({"item_id": str}).to_parquet(path)
    return path


def losses(votes, k, n_draws):
    """Return deep's and the rival's log loss, a row a draw."""
    panel = StudyPanel("x", bench.measurable(votes)[0])
    rows = [bench.measure([panel], draw) for draw in draws_of([panel], [k], n_draws, 0)]
    return np.array([[row["shipped"]["log_loss"], row["rivals"][bench.RIVALS[1]]["log_loss"]] for row in rows])


@pytest.mark.parametrize("k", [1, 2])
def test_deep_loses_no_more_than_thirty_lines_on_real_votes(k):
    """In the mean over panels of real judges, the same draws of training datasets for both."""
    paths = [DATA / name / file for name, file in REAL.items()]
    if not all(path.exists() for path in paths):
        pytest.skip(f"no real votes in {DATA}")
    deep, theirs = np.mean([losses(read_votes([str(path)]), k, 6).mean(axis=0) for path in paths], axis=0)
    assert deep <= theirs


@pytest.mark.parametrize("k", [1, 2])
def test_deep_loses_no_more_than_thirty_lines_on_simulated_votes(k):
    """On the embedded votes, simulated from what the paper publishes."""
    deep, theirs = losses(simulate_votes(0), k, 4).mean(axis=0)
    assert deep <= theirs


def test_the_thirty_lines_are_a_script(tmp_path, monkeypatch, capsys):
    """A table of votes in, a CSV of P out, for one dataset; one training dataset is enough."""
    path = write_panel(tmp_path, shares=(0.4, 0.6))
    frame = pd.read_parquet(path)
    votes = 2.0 * frame[list("vwxz")].to_numpy() - 1
    mine = (frame.dataset == "d1").to_numpy()
    p = thirty_lines(votes[~mine], frame.label[~mine].to_numpy(), frame.dataset[~mine].to_numpy(), votes[mine])
    assert ((p > 0.5) == frame.label[mine]).mean() > 0.7
    monkeypatch.setattr(sys, "argv", ["thirty_lines.py", str(path), "d1"])
    code = (Path(bench.__file__).parent / "thirty_lines.py").read_text()
    exec(compile(code, "thirty_lines.py", "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "dataset,item_id,p_consistent"
    assert [float(line.split(",")[2]) for line in lines[1:]] == pytest.approx(p.tolist())


def test_a_rule_that_ships_gives_what_was_measured(tmp_path):
    """The nested figures are computed from what the rule looks at: by the constants that ship, the same."""
    panel = StudyPanel("x", read_votes([str(write_panel(tmp_path))]))
    for draw in draws_of([panel], [1, 3], 3, 0):
        row = bench.measure([panel], draw)
        ece, loss, _ = bench.with_rule(row, AcrossPanels())
        assert (ece, loss) == pytest.approx((row["shipped"]["ece"], row["shipped"]["log_loss"]), abs=1e-6)


FEW = Path(bench.__file__).parent / "few" / "measured.json"


def test_the_committed_table_is_that_of_its_figures():
    """Each target beside what is reached; JSON cuts figures to four, so that only rounding may differ."""
    result = json.loads(FEW.read_text())
    rows = [line.split("|") for line in targets.lines(result)]
    assert len(rows) == len(result["table"])
    for row, told in zip(rows, (line.split("|") for line in result["table"]), strict=True):
        assert (row[1], row[4]) == (told[1], told[4])


def test_the_page_has_the_means_of_the_ten_panels():
    """ECE, log loss and balanced accuracy of deep, and what its interval covers, at one dataset to all."""
    cells = json.loads(FEW.read_text())["few"]["cells"]
    page = (Path(bench.__file__).parents[1] / "docs" / "results-tables.md").read_text()
    (told,) = (line.split("|")[2:-1] for line in page.splitlines() if line.startswith("| deep (constants of the other"))
    for k, text in zip((1, 2, 3, "all"), told, strict=True):
        mine = [cell["deep"] for cell in cells if cell["k"] == k]
        means = [100 * np.mean([one["ece"] for one in mine]), np.mean([one["log_loss"] for one in mine])]
        assert [float(word) for word in text.split("/")[:2]] == pytest.approx(means, abs=0.06)


def test_the_table_holds_decisions_beside_thirty_lines(tmp_path, monkeypatch, capsys):
    """Each K with the majority, what intervals cover and how often the sure are right; the differences are theirs."""
    for seed, name in enumerate(("css_binary", "hatecheck")):
        write_panel(tmp_path, name, seed=seed)
    monkeypatch.setenv("DEEP_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(bench, "MANY_ROWS", 5)
    options = ["--panels", "css_binary", "hatecheck", "--table", "--draws", "2", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["few_datasets.py", *options])
    bench.main()
    printed = capsys.readouterr().out
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith(("| css_binary", "| hatecheck"))]
    assert len(rows) == 6
    for _, deep, thirty, _, less in rows:
        (accuracy, loss), (its, losses), (gain, change) = (map(float, cell.split("/")) for cell in (deep, thirty, less))
        assert gain == pytest.approx(accuracy - its, abs=0.11)
        assert change == pytest.approx(loss - losses, abs=0.0011)
    assert printed.count("% in the mean over panels.") == 3
    assert printed.count("Sure: ") == printed.count("Behind the majority by most: ") == 3
