"""The paper's figures and the counts behind them; the ranges of encoders that it states."""

import json
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from deep._util.scales import Scale
from deep.datasets import (
    OperatingPoint,
    published_datasets,
    published_points,
    score_ranges,
)
from deep.experiments.loo import published_baselines
from deep.experiments.paper import published_table
from tests.datasets.tables import fault

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from fit_votes import recover_counts

DATASETS = {dataset.name: dataset for dataset in published_datasets()}

CONTRADICTING = [p for p in published_points() if not recover_counts(p, DATASETS[p.dataset]).reproduces]

BY_CELL = {(point.voter, point.dataset): point for point in published_points()}


@pytest.mark.parametrize(
    ("voter", "dataset", "figures"),
    [
        ("prompt-1/gpt-3.5", "aggrefact-xsum", (67.4, 64.5, 81.8)),
        ("prompt-3/gpt-4", "halueval-summarization", (72.7, 69.3, 81.3)),
        ("prompt-4/gpt-4", "tofueval-mediasum", (66.6, 71.1, 70.2)),
        ("prompt-5/gpt-4", "tofueval-meetingbank", (67.6, 74.2, 83.2)),
    ],
)
def test_cells_of_table_1(voter, dataset, figures):
    """Cells from each corner of Table 1 stand where the paper has them."""
    point = BY_CELL[voter, dataset]
    assert (point.balanced_accuracy, point.precision, point.recall) == pytest.approx(tuple(f / 100 for f in figures))


def test_gpt_4_gains_what_the_paper_says():
    """The mean gain of GPT-4 over GPT-3.5 is the 2.71 points that the 20 printed differences give."""
    gains = [
        point.balanced_accuracy - BY_CELL[f"{point.prompt}/gpt-3.5", point.dataset].balanced_accuracy
        for point in published_points()
        if point.model == "gpt-4"
    ]
    assert 100 * np.mean(gains) == pytest.approx(2.71, abs=0.005)


def test_best_single_prompts_are_those_of_table_6():
    """The best balanced accuracy per dataset is the first column of the paper's Table 6."""
    best = [max(p.balanced_accuracy for p in published_points() if p.dataset == d.name) for d in published_datasets()]
    assert best == pytest.approx([0.691, 0.727, 0.666, 0.732])


def test_the_prior_behind_every_cell():
    """Every cell that is consistent implies the class shares of its dataset."""
    for point in published_points():
        dataset = DATASETS[point.dataset]
        if point not in CONTRADICTING:
            assert point.prior == pytest.approx(dataset.n_consistent / dataset.n_items, abs=0.003)


def test_contradicting_cells_are_those_listed():
    """The cells found by arithmetic are the two that the data file lists."""
    listed = json.loads(files("deep.datasets").joinpath("operating_points.json").read_text())["prompts"][
        "contradicting"
    ]
    result = [{"prompt": p.prompt, "model": p.model, "dataset": p.dataset} for p in CONTRADICTING]
    assert result == listed
    assert len(result) == 2


def test_recovered_counts_print_as_the_paper_does():
    """Rounding the rates of the recovered counts gives the printed figures, in 38 of 40 cells."""
    agree = 0
    for point in published_points():
        dataset = DATASETS[point.dataset]
        tp, fp, reproduces = recover_counts(point, dataset)
        rates = np.array([(tp / dataset.n_consistent + 1 - fp / dataset.n_inconsistent) / 2, tp / (tp + fp)])
        gaps = np.abs(
            [*rates, tp / dataset.n_consistent] - np.array([point.balanced_accuracy, point.precision, point.recall])
        )
        agree += reproduces
        assert (gaps.max() <= 0.0005 + 1e-9) == reproduces
    assert agree == 38


def test_counts_of_a_contradicting_cell_are_the_nearest_whole_ones():
    """0.832 of 169 is 140.6 and 2 x 0.676 - 0.832 of 98 is 51.0, so 141 and 98 - 51."""
    point = BY_CELL["prompt-5/gpt-4", "tofueval-meetingbank"]
    assert recover_counts(point, DATASETS[point.dataset]) == (141, 47, False)


def test_a_recall_that_no_count_has():
    """Where not even the recall is a share of whole items, the nearest counts are given."""
    point = OperatingPoint("p", "m", "tofueval-meetingbank", 0.5, 0.5, 0.003)
    assert recover_counts(point, DATASETS["tofueval-meetingbank"]) == (1, 0, False)


def test_cells_of_table_3():
    """Encoders, prompts of others and the paper's ensembles, with their margins, on four datasets each."""
    cells = {(row.method, row.dataset): (row.kind, row.balanced_accuracy, row.margin) for row in published_baselines()}
    assert len(cells) == 14 * 4
    assert cells["SummaC-ZS", "tofueval-mediasum"] == ("encoder", 0.486, 0.06)
    assert cells["Tang2024-Summary (GPT-4)", "tofueval-meetingbank"] == ("llm", 0.729, 0.031)
    assert cells["Ensemble-Top-5 (GPT-4)", "aggrefact-xsum"] == ("ensemble", 0.719, 0.038)
    assert {row.method for row in published_baselines() if row.kind == "encoder"} == {
        "AlignScore",
        "QAFactEval",
        "QuestEval",
        "SummaC-Cv",
        "SummaC-ZS",
    }


def test_tables_2_and_3_agree():
    """The best of Table 2, rounded, is the ensemble row of Table 3 in all twelve cells."""
    table_3 = {(row.dataset, row.method.split()[0]): row.balanced_accuracy for row in published_baselines()}
    best = {}
    for row in published_table("2"):
        key = row.dataset, f"Ensemble-Top-{row.n_prompts}"
        best[key] = max(best.get(key, 0.0), row.value)
    assert len(best) == 12
    assert {key: table_3[key] for key in best} == {
        key: pytest.approx(value, abs=0.00051) for key, value in best.items()
    }


def test_tables_4_and_5_agree():
    """Table 5 on AggreFact-XSUM is Table 4 with three prompts, before and after Platt scaling."""
    table_4 = {(row.ensembler, row.calibrator): row.value for row in published_table("4") if row.n_prompts == 3}
    table_5 = {(r.ensembler, r.calibrator): r.value for r in published_table("5") if r.dataset == "aggrefact-xsum"}
    assert len(table_4) == 28
    assert {key: table_5[key] for key in table_4} == table_4


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("SummaC-ZS", (-1, 1)),
        ("summac_zs@0a1b2c3d/model", (-1, 1)),
        ("SummaC-Cv", (0, 1)),
        ("SummaC-Conv", (0, 1)),
        ("QAFactEval", (0, 5)),
        ("QuestEval", (0, 1)),
        ("AlignScore", (0, 1)),
        ("mine", None),
    ],
)
def test_published_ranges_are_known_by_name(name, known):
    """However the name is spelled; other scorers have none."""
    result = score_ranges([name], np.array([[0.2], [np.nan]]), {})
    assert result == ({} if known is None else {name: known})


def test_scores_outside_a_published_range_are_of_another_scorer():
    """AlignScore in percent keeps the range of its scores; a declared scale goes before the name."""
    assert score_ranges(["AlignScore"], np.array([[70.0]]), {}) == {}
    percent = {"AlignScore": Scale.parse("0-100")}
    assert score_ranges(["AlignScore"], np.array([[70.0]]), percent) == {"AlignScore": (0, 100)}


@pytest.mark.parametrize(("text", "ends"), [("0:5", (0, 5)), ("-1:1", (-1, 1)), ("-3.5..0", (-3.5, 0))])
def test_the_ends_of_a_scale_stand_apart(text, ends):
    """With a colon too, as `--range` had them."""
    scale = Scale.parse(text)
    assert (scale.low, scale.high) == ends


@pytest.mark.parametrize("scale", ["0-5", "6-0"])
def test_scales_that_cannot_be(scale):
    """Scores beyond what was said, and a scorer whose low scores are the best, for a threshold from below."""
    scores = np.array([[0.2, 5.5]])
    assert fault(score_ranges, ["a", "b"], scores, {"b": Scale.parse(scale)}) == (
        f"`scale` must hold every score of 'b', low to high. Got 5.5, not in {scale}."
    )
