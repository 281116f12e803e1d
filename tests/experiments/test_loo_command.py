"""The main command: what it writes, what it prints, and how it refuses."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from deep.exceptions import InputError
from deep.experiments.loo._command import _output_lines
from deep.experiments.loo._run_tables import draw_threshold_transfer
from deep.experiments.loo._show import _encoder_table, verdict_lines
from deep.model import SCORE_COLUMNS
from tests.deep_commands import loo as main

CHAINS = ["--ensembler", "LogisticRegression", "MajorityLabelVoter", "--calibrator", "platt"]
QUICK = ["--sizes", "3", *CHAINS, "--n-boot", "200", "--jobs", "1"]

ROW_KEYS = {
    "ensembler", "n_prompts", "selector", "prompts", "calibrator", "balanced_accuracy", "balanced_accuracy_ci",
    "precision", "recall", "auroc", "log_loss", "brier", "ece", "ece_floor", "ece_floor_95",
}  # fmt: skip

RUN_KEYS = {
    "schema_version", "test", "votes", "n_test", "prior_test", "train", "rows", "recommended", "baselines",
    "comparisons", "seconds", "recommended_by_accuracy", "recommended_chain", "recommended_paper", "oracle", "warnings",
    "notes",
}  # fmt: skip


@pytest.fixture
def loo(request, tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in an empty folder and returns status, stdout and stderr.

    Drawing is slow, so only tests marked ``figures`` draw.
    """
    monkeypatch.chdir(tmp_path)
    if request.node.get_closest_marker("figures") is None:
        request.getfixturevalue("undrawn")

    def run(*words):
        status = main([*words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def make_votes(path, *, n=160, datasets="abc", unlabeled="", seed=0, **changes):
    """Write a small table of votes with four voters of falling skill, and return its frame."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"dataset": rng.choice(list(datasets), n), "item_id": [f"i{k}" for k in range(n)]})
    label = rng.integers(0, 2, n)
    frame["label"] = pd.array(label, dtype="Int64")
    for skill, voter in zip((0.9, 0.8, 0.7, 0.6), ("v", "w", "x", "z"), strict=True):
        frame[voter] = pd.array(np.where(rng.random(n) < skill, label, 1 - label), dtype="Int64")
    frame.loc[rng.random(n) < 0.1, "z"] = pd.NA
    frame.loc[frame["dataset"].isin(list(unlabeled)), "label"] = pd.NA
    for column, values in changes.items():
        frame[column] = values
    frame.to_csv(path, index=False)
    return frame


def read_results(folder):
    """Return a run's results without the times."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    for run in [results, *results.get("runs", [])]:
        run.pop("seconds")
    return results


@pytest.mark.figures
def test_default_run_writes_everything_and_says_simulated(loo, tmp_path, xsum):
    """The embedded default holds out the paper's 558 items and names its votes simulated in every output."""
    status, out, err = loo("--test", "aggrefact", *QUICK)
    folder = tmp_path / "runs" / "loo-aggrefact-xsum"
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert status == 0
    assert err == ""
    assert set(results) >= RUN_KEYS
    assert read_results(folder) == read_results(xsum)
    assert (results["test"], results["votes"], results["n_test"]) == ("aggrefact-xsum", "simulated", 558)
    assert results["prior_test"] == pytest.approx(285 / 558)
    assert results["train"] == {"halueval-summarization": 3000, "tofueval-mediasum": 267, "tofueval-meetingbank": 267}
    assert "SIMULATED" in out
    assert "no LLM was called" in out
    assert out.endswith("report: open runs/loo-aggrefact-xsum/report.html\n")
    assert "These votes are SIMULATED" in (folder / "report.html").read_text(encoding="utf-8")
    assert pq.read_metadata(folder / "votes.parquet").num_rows == 558
    for table in (folder / "tables").glob("*.csv"):
        rows = pd.read_csv(table)
        printed = rows["type"] == "published" if "type" in rows else np.zeros(len(rows), dtype=bool)
        assert (rows["votes"] == np.where(printed, "printed", "simulated")).all()
        assert table.with_suffix(".tex").read_text(encoding="utf-8").rstrip().endswith(r"\end{tabular}")
        assert "Votes: simulated." in table.with_suffix(".md").read_text(encoding="utf-8")
    assert pq.read_schema(folder / "scores.parquet").metadata[b"deep.votes"] == b'"simulated"'
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {"reliability-aggrefact-xsum.png", "reliability-aggrefact-xsum.svg"} <= figures
    assert all("SIMULATED" in path.read_text(encoding="utf-8") for path in (folder / "figures").glob("*.svg"))


@pytest.fixture(scope="module")
def xsum(tmp_path_factory):
    """Return the folder of a run on the simulated votes, without figures, beside what it printed; to be read only."""
    folder = tmp_path_factory.mktemp("xsum") / "run"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr("deep.experiments.loo.write_figures", lambda *args, **kwargs: None)
        assert main(["--test", "aggrefact", *QUICK, "--json", "--out", str(folder)]) == 0
    folder.with_name("printed.json").write_text(printed.getvalue(), encoding="utf-8")
    return folder


def test_rows_baselines_and_comparisons(xsum):
    """The table has a row for each ensembler, size and calibrator; the published encoders stand beside."""
    results = read_results(xsum)
    assert [(r["ensembler"], r["n_prompts"], r["calibrator"]) for r in results["rows"]] == [
        (name, 3, calibrator) for name in ("LogisticRegression", "MajorityLabelVoter") for calibrator in (None, "platt")
    ]
    assert all(set(row) >= ROW_KEYS for row in results["rows"])
    assert all(len(row["prompts"]) == row["n_prompts"] for row in results["rows"])
    assert results["recommended"]["chosen_on"] == "training"
    assert results["oracle"]["chosen_on"] == "test"
    by_kind = pd.DataFrame(results["baselines"]).groupby("kind").size().to_dict()
    one_each = dict.fromkeys(("best_prompt", "best_judge_context", "majority"), 1)
    assert by_kind == {"prompt": 10, **one_each, "published": by_kind["published"]}
    published = {row["name"]: row["balanced_accuracy"] for row in results["baselines"] if row["kind"] == "published"}
    assert published["AlignScore"] == 0.702
    assert [row["a"] for row in results["comparisons"]] == ["recommended"] * 3
    assert set(results["recommended"]) >= ROW_KEYS
    asked = [row for row in results["rows"] if row["calibrator"] == "platt"]
    best = min(asked, key=lambda row: row["inner_log_loss"])
    assert {name: results["recommended"][name] for name in ("ensembler", "prompts", "calibrator")} == {
        name: best[name] for name in ("ensembler", "prompts", "calibrator")
    }
    assert results["recommended_chain"]["inner_log_loss"] == min(row["inner_log_loss"] for row in asked)
    assert "3 training datasets tell little" in results["recommended"]["prior"]["warning"]


def test_the_best_judge_with_its_context_is_a_rival(xsum):
    """It is one judge of the training data's choice, with a P of its own, and is tested against."""
    results = read_results(xsum)
    (context,) = (row for row in results["baselines"] if row["kind"] == "best_judge_context")
    assert context["name"] in {row["name"] for row in results["baselines"] if row["kind"] == "prompt"}
    assert {"balanced_accuracy", "ece", "ece_floor", "log_loss"} <= {k for k, v in context.items() if v is not None}
    assert f"best_judge_context: {context['name']}" in [row["b"] for row in results["comparisons"]]


def test_scores_cover_every_held_out_item(xsum):
    """One row an item, probabilities strictly between 0 and 1, and the metrics can be computed from it."""
    scores, results = pd.read_parquet(xsum / "scores.parquet"), read_results(xsum)
    assert list(scores) == ["dataset", "item_id", "label", *SCORE_COLUMNS]
    assert (len(scores), scores["item_id"].nunique()) == (558, 558)
    assert scores["p_consistent"].between(0, 1, inclusive="neither").all()
    assert scores["p_consistent"].between(scores["p_low"], scores["p_high"]).all()
    decided, label = scores["decision"] == 1, scores["label"] == 1
    expected = (decided[label].mean() + (~decided)[~label].mean()) / 2
    assert results["recommended"]["balanced_accuracy"] == pytest.approx(expected)
    assert results["recommended"]["brier"] == pytest.approx(((scores["p_consistent"] - label) ** 2).mean())


def test_json_prints_the_results_and_nothing_else(xsum):
    """`--json` puts exactly results.json on stdout."""
    assert xsum.with_name("printed.json").read_text(encoding="utf-8") == (xsum / "results.json").read_text("utf-8")


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs(loo, tmp_path):
    """One process and two give the same results, forests included."""
    options = ["--test", "aggrefact", "--sizes", "3", "--ensembler", "RandomForest,DecisionTree,XGB", "--n-boot", "200"]
    for jobs in ("1", "2"):
        assert loo(*options, "--jobs", jobs, "--out", jobs)[0] == 0
    assert read_results(tmp_path / "1") == read_results(tmp_path / "2")
    frames = [pd.read_parquet(tmp_path / jobs / "scores.parquet") for jobs in ("1", "2")]
    pd.testing.assert_frame_equal(*frames)


def test_seed_decides_the_simulated_votes(loo, tmp_path, xsum):
    """Another seed gives other results; the same one the same, as the default run above."""
    loo("--test", "aggrefact", "--seed", "2", "--out", "2", *QUICK)
    assert read_results(tmp_path / "2")["rows"] != read_results(xsum)["rows"]


def test_own_votes_all_held_out_in_turn(loo, tmp_path):
    """`--test all` has a run for each dataset and their means."""
    make_votes("v.csv")
    assert loo("--test", "all", "--votes", "v.csv", *QUICK)[0] == 0
    results = read_results(tmp_path / "runs" / "loo-all")
    runs = results["runs"]
    assert [run["test"] for run in runs] == ["a", "b", "c"]
    assert all(run["votes"] == ["v.csv"] for run in runs)
    mean = results["mean"]["recommended"]["balanced_accuracy"]
    assert mean == pytest.approx(np.mean([run["recommended"]["balanced_accuracy"] for run in runs]))
    low, high = results["mean"]["recommended"]["balanced_accuracy_ci"]
    assert 0 <= low < mean < high <= 1
    assert results["mean"]["best_judge_context"] is None  # two datasets are too few to learn a context from
    for test in (test for run in runs for test in run["comparisons"]):
        assert test["p_bonferroni_datasets"] == min(1, 3 * test["p"])
        assert test["significant_datasets"] == (test["p_bonferroni_datasets"] < 0.01)
    assert len(pd.read_parquet(tmp_path / "runs" / "loo-all" / "scores.parquet")) == 160


def test_held_out_labels_change_nothing_but_the_metrics(loo, tmp_path):
    """With the held-out labels flipped, or missing, choice and probabilities stay what they were."""
    frame = make_votes("plain.csv", datasets="abcd")
    held = frame["dataset"] == "b"
    frame.assign(label=frame["label"].where(~held, 1 - frame["label"])).to_csv("flipped.csv", index=False)
    frame.assign(label=frame["label"].where(~held)).to_csv("unlabeled.csv", index=False)
    scores, results, printed = {}, {}, {}
    for name in ("plain", "flipped", "unlabeled"):
        status, printed[name], _ = loo("--test", "b", "--votes", f"{name}.csv", "--out", name, *QUICK)
        assert status == 0
        scores[name] = pd.read_parquet(tmp_path / name / "scores.parquet")
        results[name] = read_results(tmp_path / name)
    for name in ("flipped", "unlabeled"):
        for column in ("p_consistent", "p_low", "p_high", "p_uniform", "p_uncalibrated", "n_votes"):
            assert scores[name][column].tolist() == scores["plain"][column].tolist()
        assert results[name]["recommended"]["params"] == results["plain"]["recommended"]["params"]
        assert results[name]["recommended"]["prior"] == results["plain"]["recommended"]["prior"]
    assert results["flipped"]["recommended"]["balanced_accuracy"] == pytest.approx(
        1 - results["plain"]["recommended"]["balanced_accuracy"]
    )
    empty = results["unlabeled"]
    assert empty["prior_test"] is None
    assert empty["recommended"]["balanced_accuracy"] is None
    assert empty["recommended"]["ece"] is None
    assert empty["comparisons"] == []
    assert scores["unlabeled"]["label"].isna().all()
    assert printed["unlabeled"].count("no label") == 2  # of the dataset, and of what stands in the table
    assert "majority vote" in printed["plain"]
    assert "majority vote" not in printed["unlabeled"]
    chosen = empty["recommended"]
    figures = [f"{100 * chosen['inner_balanced_accuracy']:.1f}", f"{chosen['inner_log_loss']:.3f}", "training"]
    assert figures in [line.split()[-3:] for line in printed["unlabeled"].splitlines()]


def test_row_order_of_the_file_does_not_matter(loo, tmp_path):
    """A shuffled table gives the same results and the same score for each item."""
    frame = make_votes("a.csv", datasets="abcd")
    frame.sample(frac=1, random_state=1).to_csv("b.csv", index=False)
    for name in ("a", "b"):
        loo("--test", "c", "--votes", f"{name}.csv", "--out", name, *QUICK)
    a, b = (pd.read_parquet(tmp_path / n / "scores.parquet").set_index("item_id")["p_consistent"] for n in ("a", "b"))
    assert a.sort_index().to_numpy() == pytest.approx(b.sort_index().to_numpy(), abs=1e-12)


def test_one_training_dataset_is_cut_into_five(loo, tmp_path):
    """Two datasets are enough: the inner folds are five of the one that is trained on."""
    make_votes("v.csv", datasets="ab")
    assert loo("--test", "a", "--votes", "v.csv", *QUICK)[0] == 0
    results = read_results(tmp_path / "runs" / "loo-a")
    assert list(results["train"]) == ["b"]
    asked = [row for row in results["rows"] if row["calibrator"] == "platt"]
    assert results["recommended"]["inner_log_loss"] == min(row["inner_log_loss"] for row in asked)
    scores = pd.read_parquet(tmp_path / "runs" / "loo-a" / "scores.parquet")
    assert scores["p_consistent"].between(scores["p_low"], scores["p_high"]).all()


def test_scores_without_votes_are_refused(loo):
    """They are not laid beside simulated votes, whose items they do not share."""
    status, _, message = loo("--test", "b", "--scores", "s.parquet")
    assert status == 2
    assert "`votes` must be given beside tables of scores. Got `scores` 's.parquet' alone. Give --votes FILE" in message


@pytest.mark.figures
def test_scores_are_baselines_with_three_thresholds(loo, tmp_path):
    """Encoder scores, of the same column name as a voter, stand with thresholds from three places."""
    frame = make_votes("v.csv")
    noise = np.random.default_rng(5).normal(size=len(frame))
    frame[["dataset", "item_id"]].assign(w=frame["label"].to_numpy(dtype=float) + noise).to_parquet("s.parquet")
    assert loo("--test", "b", "--votes", "v.csv", "--scores", "s.parquet", *QUICK)[0] == 0
    folder = tmp_path / "runs" / "loo-b"
    rows = [row for row in read_results(folder)["baselines"] if row["kind"] == "encoder"]
    assert [row["threshold_from"] for row in rows] == ["test", "center", "train"]
    assert rows[0]["balanced_accuracy"] >= max(row["balanced_accuracy"] for row in rows[1:])
    assert {"thresholds.png", "threshold-transfer.svg"} <= {path.name for path in (folder / "figures").iterdir()}
    assert [row["b"] for row in read_results(folder)["comparisons"]][-1] == "encoder: w"
    (transfer,) = pd.read_csv(folder / "tables" / "figure2-threshold-transfer.csv").to_dict("records")
    assert transfer["loss_train"] == pytest.approx(rows[0]["balanced_accuracy"] - rows[2]["balanced_accuracy"])
    correlation = pd.read_csv(folder / "tables" / "error-correlation.csv").set_index("voter")[list("vwxz")].to_numpy()
    assert correlation == pytest.approx(correlation.T)
    assert np.diag(correlation) == pytest.approx(np.ones(4))


def test_names_of_encoders_stand_beside_their_bars():
    """Each at the middle one of its three."""
    rows = [
        {"kind": "encoder", "name": name, "threshold_from": origin, "balanced_accuracy": 0.7}
        for name in ("one", "two")
        for origin in ("test", "center", "train")
    ]
    (axes,) = draw_threshold_transfer([{"test": "a", "baselines": rows}]).axes
    heights = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
    places = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert (places["one"], places["two"]) == pytest.approx((heights[1], heights[4]))


@pytest.mark.parametrize("scored", [False, True])
def test_printed_encoders_ask_for_scores_where_there_are_none(scored):
    """Where scores were given their columns are full, and nothing more is needed."""
    kinds = ["published", "encoder"] if scored else ["published"]
    rows = [{"kind": k, "name": "enc", "threshold_from": "train", "balanced_accuracy": 0.7} for k in kinds]
    shown = "\n".join(_encoder_table([{"test": "a", "votes": ["v.csv"], "baselines": rows}]))
    assert "enc (printed)" in shown
    assert "printed: the paper's Table 3, of one column, not computed here" in shown
    assert ("`deep ask EXAMPLES" in shown) != scored


def test_both_recipes_side_by_side(loo, tmp_path):
    """`--compare-recipes` shows both; `recommended` is of the recipe that is asked for, by default deep's."""
    make_votes("v.csv")
    loo("--test", "b", "--votes", "v.csv", "--compare-recipes", *QUICK)
    both = read_results(tmp_path / "runs" / "loo-b")
    loo("--test", "b", "--votes", "v.csv", "--recipe", "paper", *QUICK)
    paper = read_results(tmp_path / "runs" / "loo-b")
    loo("--test", "b", "--votes", "v.csv", *QUICK)
    ours = read_results(tmp_path / "runs" / "loo-b")
    assert [row["recipe"] for row in both["rows"]] == ["deep"] * 4 + ["paper"] * 4
    assert both["rows"] == ours["rows"] + paper["rows"]
    assert both["recommended"] == ours["recommended"] != paper["recommended"]
    assert (both["recommended"]["recipe"], both["recommended_paper"]["recipe"]) == ("deep", "paper")
    assert ours["recommended_paper"] is paper["recommended_chain"] is None
    assert both["recommended_paper"] == paper["recommended_paper"]
    for name in ("ensembler", "prompts", "calibrator", "balanced_accuracy", "log_loss", "ece"):
        assert paper["recommended"][name] == paper["recommended_paper"][name]
    assert both["recommended_paper"]["calibrator"] == "platt"


def test_seeds_have_a_mean_and_a_spread_and_training_datasets_a_choice(loo, tmp_path):
    """Each seed's figures stand in a table, and what is learned from is what was named."""
    make_votes("v.csv", datasets="abcd")
    words = ["--test", "b", "--votes", "v.csv", *QUICK]
    status, out, _ = loo(*words, "--train", "a", "c", "--seeds", "2", "--out", "run")
    assert status == 0
    assert set(read_results(tmp_path / "run")["train"]) == {"a", "c"}
    seeds, spread = (pd.read_csv(tmp_path / "run" / f"{name}.csv") for name in ("seeds", "seeds-spread"))
    assert set(seeds["seed"]) == {0, 1}
    own = seeds[seeds["what"] == "recommended"]["balanced_accuracy"]
    row = spread[spread["what"] == "recommended"].iloc[0]
    assert [row["balanced_accuracy mean"], row["balanced_accuracy max"]] == pytest.approx([own.mean(), own.max()])
    assert "balanced_accuracy mean" in out
    for names in (["a", "b"], ["nowhere"]):
        status, _, err = loo(*words, "--train", *names)
        assert status == 2
        assert err.startswith("error: `train` must ")


@pytest.mark.parametrize(
    ("ci", "begin"),
    [([0.02, 0.1], "OK beats the best judge"), ([-0.02, 0.1], "WARN beats"), ([-0.2, -0.1], "FAIL beats")],
)
def test_a_run_opens_with_its_verdict(ci, begin):
    """OK only where the paired interval excludes 0; the rival is the judge that training data choose."""
    figures = {"balanced_accuracy": 0.7, "ece": 0.05, "ece_floor_95": 0.06, "log_loss": 0.6}
    judge = {"kind": "best_prompt", "name": "strict", "balanced_accuracy": 0.65}
    chains = [
        {"recipe": "deep", "ensembler": "LDA", "n_prompts": n, "calibrator": calibrator, "ece": ece}
        for n, before, after in ((3, 0.1, 0.05), (5, 0.1, 0.12))
        for calibrator, ece in ((None, before), ("platt", after))
    ]
    run = {"test": "a", "recommended": figures, "baselines": [judge], "rows": chains}
    run["comparisons"] = [{"b": "best_prompt: strict", "ci": ci}, {"b": "majority: majority vote", "ci": [0.3, 0.4]}]
    message = "\n".join(verdict_lines([run])).replace("\n  ", " ")
    assert message.startswith(begin)
    assert "(strict, chosen on training data) 65.0 %" in message
    assert "OK calibrated. P is off by 5.0 points" in message
    assert "Platt scaling lowers ECE in 1 of 2 chains of deep's recipe, mean 10.0 to 8.5" in message


def test_sizes_accept_commas_repeats_and_all(loo, tmp_path):
    """Sizes above the number of voters become all of them, once; `--prompts` is another name."""
    make_votes("v.csv")
    words = ["--prompts", "2,3", "--sizes", "9", "all", "40"]
    quick = [word for word in QUICK if word not in ("--sizes", "3")]
    assert loo("--test", "b", "--votes", "v.csv", *words, *quick)[0] == 0
    rows = read_results(tmp_path / "runs" / "loo-b")["rows"]
    assert list(dict.fromkeys((row["n_prompts"], row["selector"] == "all") for row in rows)) == [
        (2, False),
        (3, False),
        (4, True),
    ]


def test_small_sizes_leave_out_the_label_model_with_a_warning(loo, tmp_path):
    """LabelModel needs three voters; at size 2 it is left out aloud, and alone it is an error."""
    make_votes("v.csv")
    words = ["--test", "b", "--votes", "v.csv", "--sizes", "2", "--n-boot", "200", "--jobs", "1"]
    status, out, _ = loo(*words, "--ensembler", "LabelModel,LDA", "--calibrator", "platt")
    assert status == 0
    assert "LabelModel needs at least 3 voters; left out at size 2" in out
    assert {row["ensembler"] for row in read_results(tmp_path / "runs" / "loo-b")["rows"]} == {"LDA"}
    status, _, err = loo(*words, "--ensembler", "LabelModel")
    (line,) = err.splitlines()
    assert (status, "LabelModel needs at least 3 voters" in line) == (2, True)


def test_families_are_held_out_together(loo, tmp_path):
    """`--hold-out family` trains on no sibling; the column `family` names them."""
    frame = make_votes("v.csv", datasets="abcd")
    frame.assign(family=frame["dataset"].map({"a": "kin", "b": "kin", "c": "c", "d": "d"})).to_csv("v.csv", index=False)
    loo("--test", "a", "--votes", "v.csv", "--hold-out", "family", *QUICK)
    assert list(read_results(tmp_path / "runs" / "loo-a")["train"]) == ["c", "d"]


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """Return a folder of tables that cannot be held out of, and of one that can."""
    folder = tmp_path_factory.mktemp("faults")
    good = make_votes(folder / "good.csv")
    good.assign(x=good["x"].where(good.index != 1, 2)).to_csv(folder / "two.csv", index=False)
    one_class = good["label"].where(good["dataset"] == "b", 1)
    good.assign(label=one_class).to_csv(folder / "oneclass.csv", index=False)
    make_votes(folder / "unlabeled.csv", unlabeled="a")
    make_votes(folder / "single.csv", datasets="a")
    disagree = good[["dataset", "item_id"]].assign(label=1 - good["label"], s=0.5)
    disagree.to_csv(folder / "disagree.csv", index=False)
    good.to_csv(folder / "failing.csv", index=False)
    failed = good.loc[good["z"].isna() & (good["dataset"] == "b"), ["dataset", "item_id"]]
    failed.assign(voter="z", reason="unparsable").to_parquet(folder / "failing.reasons.parquet")
    (folder / "taken").mkdir()
    (folder / "taken" / "thesis.tex").write_text("")
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--test", "nonsense"], "aggrefact-xsum, halueval-summarization, tofueval-mediasum, tofueval-meetingbank"),
        (["--test", "aggrefact", "--ensembler", "Magic"], "`ensembler` must be one of AdaBoost, "),
        (["--test", "aggrefact", "--calibrator", "magic"], "`calibrator` must be one of bbq, beta, histogram, "),
        (["--test", "aggrefact", "--sizes", "0"], "`sizes` must hold positive whole numbers or 'all'. Got 0"),
        (["--test", "aggrefact", "--sizes", "few"], "`sizes` must hold positive whole numbers or 'all'. Got 'few'"),
        (["--test", "aggrefact", "--n-boot", "3"], "`n_boot` must be at least 100. Got 3"),
        (["--test", "aggrefact", "--bins", "0"], "`n_bins` must be at least 1. Got 0"),
        (["--test", "aggrefact", "--jobs", "0"], "`n_jobs` must be at least 1"),
        (["--test", "aggrefact", "--out", "taken"], "`out` must be a new folder or an earlier run"),
        (["--test", "b", "--votes", "two.csv"], "two.csv, column 'x', row 2 (line 3)"),
        (["--test", "b", "--votes", "oneclass.csv"], "in every training dataset. Got only 1 in dataset 'a'"),
        (["--test", "b", "--votes", "unlabeled.csv"], "unlabeled.csv, column 'label', row "),
        (["--test", "a", "--votes", "single.csv"], "at least two dataset names"),
        (["--test", "b", "--votes", "good.csv", "--ignore", "nobody"], "nobody"),
        (["--test", "aggrefact", "--ignore", "prompt-1/gpt-4"], "Got 'prompt-1/gpt-4', and no --votes"),
        (["--test", "b", "--votes", "failing.csv", "--strict"], "one that fails more often: 'z' has no"),
        (["--test", "b", "--votes", "good.csv", "--scores", "disagree.csv"], "label"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_line_and_leaves_nothing(loo, faults, monkeypatch, words, message):
    """Every bad option or file exits 2 with one line that says where, and writes nothing."""
    monkeypatch.chdir(faults)
    before = sorted(path.name for path in faults.rglob("*"))
    # An option that is asked about is given once.
    chains = [] if {"--ensembler", "--calibrator"} & {*words} else CHAINS
    status, out, err = loo(*words, *([] if "--sizes" in words else ["--sizes", "3"]), *chains)
    assert status == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path.name for path in faults.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_leaves_nothing_behind(tmp_path, jobs):
    """Ctrl-C in the middle ends with one line, status 130 and no folder, not even a temporary one.

    Libraries are loaded before: some cannot be interrupted while they load, or crash.
    """
    code = f"""
import sys
from deep.cli import main
from deep.ensembles import LabelModel
from deep.experiments.loo import _rivals
LabelModel().fit([[1, 1, 1], [0, 0, 0]])

def in_processes(*calls, whole=_rivals.in_processes, **options):
    for result in whole(*calls, **options):
        print("working", flush=True)
        yield result

_rivals.in_processes = in_processes
words = ["--test", "all", "--jobs", "{jobs}", "--out", "x", "--ensembler", "RandomForest", "GradientBoosting"]
sys.exit(main(words, command="loo"))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err == "interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["summeval_llm/votes_ge5.csv", "wrench_youtube/votes.csv"])
def test_real_votes_with_abstains_run_through(loo, tmp_path, data_home, path):
    """SummEval's prompt judges and YouTube's labeling functions go through every ensembler."""
    whole = pd.read_csv(data_home / path)
    datasets = whole["dataset"].unique()[:5]
    whole[whole["dataset"].isin(datasets)].to_csv("real.csv", index=False)
    words = ["--test", datasets[-1], "--votes", "real.csv", "--sizes", "3", "--calibrator", "platt", "--n-boot", "200"]
    assert loo(*words, "--jobs", "1", "--out", "x")[0] == 0
    results = read_results(tmp_path / "x")
    assert len({row["ensembler"] for row in results["rows"]}) == 17
    assert 0.5 < results["recommended"]["balanced_accuracy"] <= 1


def test_an_ensembler_that_fails_on_these_votes_is_left_out_aloud(loo, tmp_path, monkeypatch):
    """One ensembler's complaint is a warning; the others run on."""
    from deep.ensembles import ENSEMBLERS

    def refuse(self, X, y, w):
        raise InputError("`lr` must be small enough.")

    monkeypatch.setattr(ENSEMBLERS["LDA"], "_fit", refuse)
    make_votes("v.csv")
    quick = ["--ensembler", "LDA,LogisticRegression", "--calibrator", "platt", "--n-boot", "200", "--jobs", "1"]
    assert loo("--test", "b", "--votes", "v.csv", "--sizes", "3", *quick)[0] == 0
    results = read_results(tmp_path / "runs" / "loo-b")
    assert results["warnings"] == ["LDA was left out at size 3: `lr` must be small enough."]
    assert {row["ensembler"] for row in results["rows"]} == {"LogisticRegression"}


def test_tables_fit_the_terminal(xsum, monkeypatch):
    """No line of figures is wider, and no number is broken; a label too long has a line of its own."""
    monkeypatch.setenv("COLUMNS", "80")
    results = json.loads((xsum / "results.json").read_text(encoding="utf-8"))
    out = "\n".join(_output_lines(results, xsum, brief=False))
    figures = [line for line in out.splitlines() if line[:1] in set(" ~>") and any(c.isdigit() for c in line)]
    assert len(figures) > 20
    rows = [line for line in out.splitlines() if line.endswith((" simulated", " printed"))]
    assert {line[0] for line in rows if line.endswith(" simulated")} == {"~"}
    assert all(line[0] == ">" for line in rows if line.endswith(" printed"))
    assert any(line.endswith(" printed") for line in rows)
    assert max(map(len, figures)) <= 80
    (head,) = [line for line in out.splitlines() if "95 % interval   ECE" in line]
    assert head.split() == ["bal.", "acc.", "95", "%", "interval", "ECE", "floor", "log", "loss", "from"]
