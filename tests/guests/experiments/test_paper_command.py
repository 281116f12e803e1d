"""The paper's tables and figures beside a run's own, each figure marked."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.calibration import NETCAL_CLASSES
from deep.datasets import published_points
from deep.experiments.paper import kept_out, published_table
from deep.experiments.paper._paper_tables import (
    claims,
    distances,
    methods,
    paper_tables,
    side_by_side,
    with_verdicts,
)
from tests.deep_commands import paper as main

CHEAP = ["--n-boot", "100", "--jobs", "1"]
QUICK = ["--ensembler", "LabelModel", "LogisticRegression", "MajorityLabelVoter", "--no-netcal", *CHEAP]


def make_tables(folder, *, label=True):
    """Write votes of four voters and scores of two encoders on three datasets; return their paths."""
    rng = np.random.default_rng(5)
    votes, scores = [], []
    for dataset in ("aggrefact-xsum", "mine", "tofueval-mediasum"):
        y = rng.integers(0, 2, 90)
        index = pd.DataFrame({"dataset": dataset, "item_id": np.arange(90), "label": y if label else pd.NA})
        right = rng.random((90, 4)) < [0.8, 0.75, 0.7, 0.65]
        voted = pd.DataFrame(np.where(right, y[:, None], 1 - y[:, None]), columns=list("abcd"))
        votes.append(pd.concat([index, voted], axis=1))
        soft = 0.5 * y[:, None] + 0.5 * rng.random((90, 2))
        scores.append(pd.concat([index, pd.DataFrame(soft, columns=["enc1", "enc2"])], axis=1))
    pd.concat(votes).to_csv(folder / "votes.csv", index=False)
    pd.concat(scores).to_csv(folder / "scores.csv", index=False)
    return folder / "votes.csv", folder / "scores.csv"


@pytest.fixture(scope="module")
def folder(paper_run):
    """Return the folder of the run."""
    return paper_run[0]


@pytest.fixture(scope="module")
def figures(folder):
    """Return every figure of the run."""
    return pd.read_csv(folder / "figures.csv", dtype={"table": str})


@pytest.mark.figures
def test_everything_is_there(folder):
    """Six tables, three figures and why thresholds move in two formats, the run itself and what it was asked."""
    names = ("1-optimal-thresholds", "2-threshold-transfer", "4-reliability")
    drawn = [f"figure{name}" for name in names] + ["threshold-moves", "distance-from-the-printed-figures"]
    tables = [*(f"table{i}" for i in range(1, 7)), "claims", "distances", "threshold-moves"]
    expected = {"figures.csv", "report.html", "results.json", "run.toml"}
    expected |= {f"{name}.{suffix}" for name in tables for suffix in ("csv", "md", "tex")}
    narrow = {path.name for path in folder.glob("*.phone.svg")}
    assert "distance-from-the-printed-figures.phone.svg" in narrow
    assert {path.name for path in folder.iterdir()} - narrow == expected | {
        f"{name}.{suffix}" for name in drawn for suffix in ("png", "svg")
    }


@pytest.mark.figures
def test_every_figure_is_marked(figures):
    """Each is published or this run, and only this run's name their votes."""
    assert set(figures["origin"]) == {"published", "this run"}
    ours = figures["origin"] == "this run"
    assert figures["votes"].notna().equals(ours)
    assert figures[ours].groupby("table").size().index.tolist() == list("123456")


@pytest.mark.figures
def test_published_figures_are_whole(figures):
    """Tables 1, 2, 4 and 5 hold every printed figure, in percent."""
    printed = figures[figures["origin"] == "published"]
    sizes = {table: len(published_table(table)) for table in "245"}
    sizes |= {"1": 3 * len(published_points()), "3": 56, "6": 16}
    assert printed["table"].value_counts().to_dict() == sizes
    cell = printed[(printed["table"] == "2") & (printed["method"] == "LabelModel") & (printed["n_prompts"] == 9)]
    assert cell.set_index("dataset")["value"]["tofueval-meetingbank"] == 79.74


@pytest.mark.figures
def test_own_figures_are_the_runs(folder, figures):
    """Table 2 repeats the uncalibrated rows of the paper's recipe; Table 6 their best minus the best prompt."""
    runs = {run["test"]: run for run in json.loads((folder / "results.json").read_text())["runs"]}
    ours = figures[figures["origin"] == "this run"]
    for name, run in runs.items():
        rows = [r for r in run["rows"] if r["calibrator"] is None and r["recipe"] == "paper"]
        table = ours[(ours["table"] == "2") & (ours["dataset"] == name)]
        assert table["value"].tolist() == pytest.approx([100 * row["balanced_accuracy"] for row in rows], abs=1e-3)
        prompts = [row["balanced_accuracy"] for row in run["baselines"] if row["kind"] == "prompt"]
        best = max(row["balanced_accuracy"] for row in rows) - max(prompts)
        gains = ours[(ours["table"] == "6") & (ours["dataset"] == name)].set_index("method")["value"]
        assert gains["gain of the best ensemble"] == pytest.approx(100 * best, abs=1e-3)


@pytest.mark.figures
def test_layout_puts_published_above_this_run(figures):
    """A method that both have takes two rows, the printed one first; what a dataset lacks stays empty."""
    table = side_by_side(figures.assign(n_prompts=figures["n_prompts"].astype("Int64")), "2")
    mine = table[table["method"] == "LabelModel"]
    assert mine["origin"].tolist() == ["published", "this run"]
    assert mine["aggrefact-xsum, 3"].iloc[0] == "69.4"
    assert mine["halueval-summarization, 3"].tolist() == ["73.9", ""]


def test_netcal_stands_beside(tmp_path, undrawn):
    """Table 5 holds netcal's calibrators on the smallest panel, and Tables 4 and 5 netcal's ECE under deep's."""
    votes, _ = make_tables(tmp_path)
    assert (
        main(["--votes", str(votes), "--out", str(tmp_path / "out"), "--ensembler", "MajorityLabelVoter", *CHEAP]) == 0
    )
    figures = pd.read_csv(tmp_path / "out" / "figures.csv", dtype={"table": str})
    ours = figures[(figures["table"] == "5") & figures["origin"].str.startswith("this run")]
    assert set(NETCAL_CLASSES) <= set(ours["calibrator"])
    assert set(ours["n_prompts"]) == {3}
    both = ours.pivot(index=["dataset", "calibrator"], columns="origin", values="value")
    assert (both["this run"] - both["this run, netcal's ECE"]).abs().max() < 1e-3
    assert "netcal-bbq" in (tmp_path / "out" / "table5.md").read_text(encoding="utf-8")


def test_own_votes_of_the_literature_pool_are_rows_of_table_3():
    """By prompt and LLM; other prompts are no rows of it."""
    for voter, row in {
        "yes-no@0a1b2c3d/gpt-4o-mini": "ChatGPT-ZS (gpt-4o-mini)",
        "yes-no-steps@0a1b2c3d/qwen/qwen3": "ChatGPT-COT (qwen/qwen3)",
        "direct-assessment@0a1b2c3d/m": "ChatGPT-DA (m)",
        "five-stars-doc-first@0a1b2c3d/m": "ChatGPT-Star (m, document first)",
        "summary-binary@0a1b2c3d/m": "Tang2024-Summary (m)",
        "deep-printed-luo@0a1b2c3d/m": "ChatGPT-ZS (m, the printed prompt)",
        "yes-no/gpt-4": "ChatGPT-ZS (gpt-4)",
        "five-stars-doc-first/qwen/qwen3": "ChatGPT-Star (qwen/qwen3, document first)",
        "yes-no": "ChatGPT-ZS (LLM not named)",
        "prompt-1/gpt-4": None,
        "deep-quotes@0a1b2c3d/m": None,
        "a": None,
    }.items():
        measured = {"name": voter, "balanced_accuracy": 0.7, "balanced_accuracy_ci": [0.6, 0.8]}
        baseline, best = measured | {"kind": "prompt" if row is None else "rival"}, measured | {"kind": "other"}
        run = {"test": "mine", "baselines": [baseline], "rows": [], "recommended_paper": best, "recommended": best}
        ours = [result["method"] for result in methods([run]) if result["origin"] == "this run"]
        assert ours[:-2] == ([] if row is None else [row])


def test_rivals_are_rivals(tmp_path, undrawn):
    """Votes that fill a row of Table 3 enter neither an ensemble nor the majority nor Table 1: with them or without.

    QAFactEval reaches from 0 to 5 whatever was seen, and so may any scorer, by option: its centre is a threshold.
    """
    votes, scores = make_tables(tmp_path)
    pd.read_csv(scores).rename(columns={"enc1": "QAFactEval"}).to_csv(scores, index=False)
    frame = pd.read_csv(votes)
    for name in ("five-stars@0a1b2c3d/m", "deep-printed-luo@0a1b2c3d/m", "yes-no/gpt-4"):
        frame[name] = frame["label"]  # the best that there could be
    frame.to_csv(tmp_path / "with.csv", index=False)
    result = {}
    for name in ("votes", "with"):
        words = ["--votes", str(tmp_path / f"{name}.csv"), "--scores", str(scores), "--scale", "enc2=-1..2"]
        words += ["--ensembler", "LogisticRegression", "--no-netcal", *CHEAP, "--out", str(tmp_path / name)]
        assert main(words) == 0
        runs = json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))["runs"]
        centres = {b["name"]: b["threshold"] for b in runs[0]["baselines"] if b["threshold_from"] == "center"}
        assert centres == {"QAFactEval": 2.5, "enc2": 0.5}
        result[name] = pd.read_csv(tmp_path / name / "figures.csv", dtype={"table": str}).drop(columns="votes")
    ours = result["with"][result["with"]["origin"] == "this run"]
    rivals = {"ChatGPT-Star (m)", "ChatGPT-ZS (m, the printed prompt)", "ChatGPT-ZS (gpt-4)"}
    added = ours["method"].isin(rivals)
    assert (set(ours[added]["method"]), set(ours[added]["table"])) == (rivals, {"3"})
    assert (ours[added]["value"] == 100).all()
    without = result["votes"][result["votes"]["origin"] == "this run"]
    pd.testing.assert_frame_equal(ours[~added].reset_index(drop=True), without.reset_index(drop=True))


def test_votes_of_rivals_alone_are_refused(tmp_path, capsys):
    """Nothing is left to make an ensemble of."""
    votes, _ = make_tables(tmp_path)
    names = dict(zip("abcd", ("yes-no", "yes-no-steps", "five-stars", "luo"), strict=True))
    pd.read_csv(votes).rename(columns=names).to_csv(votes, index=False)
    assert main(["--votes", str(votes), "--out", str(tmp_path / "out")]) == 2
    assert "`votes` must hold voters besides the rows of the paper's Table 3. Got 'yes-no'" in capsys.readouterr().err


def figure_of(table, value, ours, **cell):
    """Return a frame of one printed figure and this run's."""
    empty = {"dataset": "aggrefact-xsum", "method": "XGB", "n_prompts": 3, "calibrator": None, "metric": "ece"}
    rows = [{"table": table, **empty, **cell, "origin": "published", "value": value}]
    if ours is not None:
        rows.append({**rows[0], "origin": "this run", "value": ours})
    return pd.DataFrame(rows)


FITTED, OUT = ({"method": name, "metric": "balanced_accuracy"} for name in ("LabelModel", "XGB"))


@pytest.mark.parametrize(
    ("votes", "table", "ours", "cell", "fit", "verdict"),
    [
        ("simulated", "2", 70.0, FITTED, "fitted", "met"),
        ("simulated", "2", 60.0, FITTED, "fitted", "off by 10.00"),
        ("simulated", "2", 70.004, OUT, "kept out", "met"),
        ("simulated", "1", 70.06, {}, "fitted", "off by 0.1"),
        ("simulated", "6", 69.95, {}, "derived", "met"),
        (["v.csv"], "2", 70.0, FITTED, "", "met"),
        (["v.csv"], "2", 70.004, FITTED, "", "met"),
        (["v.csv"], "2", 70.04, FITTED, "", "off by 0.04"),
        (["v.csv"], "4", 70.04, {}, "", "met"),
        (["v.csv"], "4", None, {}, "", "not had because this dataset is not among the votes"),
        (["v.csv"], "3", None, {"method": "AlignScore"}, "", "not had because this dataset is not among the votes"),
    ],
)
def test_every_printed_figure_has_a_verdict(votes, table, ours, cell, fit, verdict):
    """It says whether the figure is met, to the rounding of the printed one, and never that votes were fitted to it."""
    result = with_verdicts(figure_of(table, 70.0, ours, **cell), votes)
    assert result["verdict"].tolist() == [verdict, ""][: len(result)]
    assert result["fit"].tolist() == [fit, ""][: len(result)]


@pytest.mark.figures
def test_cells_kept_out_are_those_of_the_fit(figures):
    """Of Tables 2, 4 and 5, those without a calibrator too, whatever a frame makes of None."""
    votes = figures.drop(columns=["ours", "verdict", "fit"]).astype({"n_prompts": "Int64"})
    printed = with_verdicts(votes, "simulated").query("origin == 'published' and table in ['2', '4', '5']")
    expected = ["kept out" if kept_out(f) else "fitted" for table in "245" for f in published_table(table)]
    assert printed["fit"].tolist() == expected


def test_distances_by_fit_and_the_constant():
    """Counts of met and off, the mean distance, and that of the fitted cells' mean from the cells kept out."""
    cells = [("XGB", 70.0, 70.0, "fitted"), ("LDA", 80.0, 77.0, "fitted"), ("SVC", 74.0, 76.0, "kept out")]
    columns = ["method", "value", "ours", "fit"]
    printed = pd.DataFrame(cells, columns=columns).assign(table="4", dataset="aggrefact-xsum", calibrator="platt")
    printed["verdict"] = ["met", "off by 3.0", "off by 2.0"]
    result = distances(printed).set_index("fit")
    assert result.loc["fitted", ["cells", "met", "off", "distance"]].tolist() == [2, 1, 1, 1.5]
    assert result.loc["kept out", ["cells", "met", "off", "distance", "constant"]].tolist() == [1, 0, 1, 2.0, 1.0]


def test_what_the_paper_says_is_counted_in_its_own_cells():
    """Of the printed tables: 42 of 42 lower, 39 under 7, 10.6 to 5.0; of the run the same words."""
    rows = [
        {"ensembler": "LDA", "n_prompts": 3, "calibrator": name, "recipe": "paper", "balanced_accuracy": a, "ece": e}
        for name, a, e in ((None, 0.70, 0.12), ("platt", 0.69, 0.05))
    ]
    rows = [{**row, "balanced_accuracy_ci": None} for row in rows]
    best = {"balanced_accuracy": 0.7, "balanced_accuracy_ci": None}
    prompt = {"kind": "prompt", "name": "a", "precision": 0.7, "recall": 0.7, **best}
    run = {"test": "aggrefact-xsum", "baselines": [prompt], "rows": rows}
    run |= dict.fromkeys(("recommended", "recommended_paper"), best)
    result = claims(paper_tables([run]), [run]).set_index("claim").T.to_dict()
    key = "Table 4, aggrefact-xsum: "
    lower = result[f"{key}Platt lowers ECE, cells"]
    assert [lower[name] for name in ("printed", "of", "ours", "ours_of")] == [42, 42, 1, 1]
    assert [result[f"{key}ECE after it under 7, cells"][name] for name in ("printed", "ours")] == [39, 1]
    assert [result[f"{key}ECE before it, mean"][name] for name in ("printed", "ours")] == [10.6, 12.0]
    assert [result[f"{key}ECE after it, mean"][name] for name in ("printed", "ours")] == [5.0, 5.0]
    moved = result["Table 2: largest move of balanced accuracy by Platt, points"]
    assert [moved["printed"], moved["ours"]] == [0.2, 1.0]


def test_half_of_the_cells_are_kept_out_of_the_fit():
    """Those of LabelModel and the majority in Table 2 never; a cell that two tables print is in both or in neither."""
    out = {
        (f.table, f.dataset, f.ensembler, f.n_prompts, f.calibrator)
        for t in "245"
        for f in published_table(t)
        if kept_out(f)
    }
    n = sum(len(published_table(table)) for table in "245")
    assert 0.4 < len(out) / n < 0.55
    assert not any(cell[0] == "2" and cell[2] in ("LabelModel", "MajorityLabelVoter") for cell in out)
    shared = [cell for cell in out if cell[0] == "4" and cell[3] == 3]
    assert shared
    assert all(("5", *cell[1:]) in out for cell in shared)


def test_unlabeled_votes_are_refused(tmp_path, capsys):
    """No table can be filled without labels: one line, exit 2, nothing written."""
    votes, _ = make_tables(tmp_path, label=False)
    assert main(["--votes", str(votes), "--out", str(tmp_path / "out"), *QUICK]) == 2
    assert "`label` must be 0 or 1 in every row. Got a row without a label in dataset 'aggrefact-xsum'." in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_unknown_figure_dataset_is_refused(tmp_path, capsys):
    """The dataset of Figure 4 must be one of the votes'."""
    votes, _ = make_tables(tmp_path)
    assert main(["--votes", str(votes), "--figure-dataset", "nowhere", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: `figure_dataset` must be one of aggrefact-xsum, mine, ")
