"""Metrics: known values, scikit-learn as oracle, and what happens where something is missing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from deep.calibration import (
    auroc,
    balanced_accuracy,
    ece_noise_floor,
    evaluate,
    expected_calibration_error,
    log_loss,
    precision,
    recall,
)
from deep.exceptions import InputError

KEYS = [
    "balanced_accuracy",
    "precision",
    "recall",
    "auroc",
    "log_loss",
    "brier",
    "brier_reliability",
    "brier_resolution",
    "ece",
    "ece_debiased",
    "ece_floor",
    "ece_floor_95",
]

SINGLE: dict[str, Callable[..., Any]] = {
    "balanced_accuracy": balanced_accuracy,
    "precision": precision,
    "recall": recall,
    "auroc": auroc,
    "log_loss": log_loss,
    "ece": expected_calibration_error,
}


def sample(seed: int, n: int = 200, digits: int = 2) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return labels, tied probabilities and counts, both classes present."""
    rng = np.random.default_rng(seed)
    p, w = rng.random(n).round(digits), rng.integers(1, 6, n)
    y = (rng.random(n) < p).astype(int)
    y[:2] = [0, 1]
    return y, p, w


@given(seed=st.integers(0, 10_000), n=st.integers(2, 80), digits=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_metrics_equal_scikit_learn(seed: int, n: int, digits: int) -> None:
    """Where scikit-learn has the metric, weights and ties included, it is the oracle."""
    y, p, w = sample(seed, n, digits)
    clipped, decided = np.clip(p, 1e-6, 1 - 1e-6), p >= 0.5
    ours = evaluate(y, p, sample_weight=w, n_draws=0)
    assert ours["auroc"] == pytest.approx(metrics.roc_auc_score(y, p, sample_weight=w), abs=1e-12)
    assert ours["log_loss"] == pytest.approx(metrics.log_loss(y, clipped, sample_weight=w), abs=1e-12)
    assert ours["brier"] == pytest.approx(metrics.brier_score_loss(y, p, sample_weight=w), abs=1e-12)
    assert ours["recall"] == pytest.approx(metrics.recall_score(y, decided, sample_weight=w), abs=1e-12)
    assert ours["balanced_accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(y, decided, sample_weight=w), abs=1e-12
    )
    if decided.any():
        assert ours["precision"] == pytest.approx(metrics.precision_score(y, decided, sample_weight=w), abs=1e-12)


@pytest.mark.parametrize("name", SINGLE)
def test_evaluate_agrees_with_each_metric_alone(name: str) -> None:
    """One pass over the scores gives what each function gives."""
    y, p, w = sample(1)
    assert evaluate(y, p, sample_weight=w)[name] == SINGLE[name](y, p, sample_weight=w)


@pytest.mark.parametrize("n_bins", [3, 8])
def test_a_weight_is_a_row_repeated(n_bins: int) -> None:
    """Every figure is the same for cells as for rows."""
    y, p, w = sample(3)
    cells = evaluate(y, p, sample_weight=w, n_bins=n_bins)
    rows = evaluate(np.repeat(y, w), np.repeat(p, w), n_bins=n_bins)
    assert cells == pytest.approx(rows, abs=1e-12)


def test_decisions_made_otherwise_replace_the_threshold() -> None:
    """Balanced accuracy follows the decisions given, the calibration error does not."""
    y, p, w = sample(5)
    plain, swapped = evaluate(y, p, sample_weight=w), evaluate(y, p, sample_weight=w, y_decision=p < 0.5)
    assert swapped["balanced_accuracy"] == pytest.approx(1 - plain["balanced_accuracy"])
    assert swapped["ece"] == plain["ece"]


@pytest.mark.parametrize(("threshold", "expected"), [(0.0, 0.5), (0.3, 0.75), (0.6, 1.0), (0.61, 0.75), (1.0, 0.5)])
def test_a_probability_at_the_threshold_is_decided_consistent(threshold: float, expected: float) -> None:
    """Labels 0, 0, 1, 1 at 0.2, 0.3, 0.6, 0.9: P >= threshold is 1."""
    assert balanced_accuracy([0, 0, 1, 1], [0.2, 0.3, 0.6, 0.9], threshold=threshold) == expected


def test_metrics_of_decisions_take_decisions() -> None:
    """0 and 1 are probabilities too: TP 2, FN 1, FP 1, TN 0 of weight 3 and 1."""
    y, decision = [1, 1, 0], [1, 0, 1]
    w = [2, 1, 1]
    assert recall(y, decision, sample_weight=w) == 2 / 3
    assert precision(y, decision, sample_weight=w) == 2 / 3
    assert balanced_accuracy(y, decision, sample_weight=w) == 1 / 3


@pytest.mark.parametrize("label", [0, 1])
def test_what_a_missing_class_leaves_undefined_is_nan(label: int) -> None:
    """Balanced accuracy and AUROC need both classes; log loss and calibration error do not."""
    result = evaluate([label] * 3, [0.2, 0.6, 0.7])
    assert math.isnan(result["balanced_accuracy"])
    assert math.isnan(result["auroc"])
    assert math.isnan(result["recall"]) == (label == 0)
    assert result["precision"] == label
    assert all(math.isfinite(result[name]) for name in KEYS[4:])


def test_precision_without_a_positive_decision_is_nan() -> None:
    """Nothing was decided consistent, so nothing can be said of it."""
    assert math.isnan(precision([0, 1], [0.1, 0.2]))


def test_log_loss_of_a_hard_mistake_is_finite() -> None:
    """P = 0 of a consistent row counts as 1e-6: -log(1e-6) = 13.8155."""
    assert log_loss([1], [0.0]) == pytest.approx(13.8155, abs=1e-4)
    assert log_loss([1, 0], [1.0, 0.0]) == pytest.approx(1e-6, rel=1e-3)


def test_brier_parts_of_two_scores() -> None:
    """At 0.2 stand 1 of 4 consistent, at 0.8 stand 2 of 4; overall 3/8.

    Brier = (1 * 0.64 + 3 * 0.04 + 2 * 0.04 + 2 * 0.64) / 8 = 0.265; reliability = (0.05^2 + 0.3^2) / 2 = 0.04625;
    resolution = (1/8)^2 = 0.015625; uncertainty = 3/8 * 5/8 = 0.234375.
    """
    result = evaluate([1, 0, 1, 0], [0.2, 0.2, 0.8, 0.8], sample_weight=[1, 3, 2, 2])
    parts = [result[name] for name in ("brier", "brier_reliability", "brier_resolution")]
    assert parts == pytest.approx([0.265, 0.04625, 0.015625])


@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), n_bins=st.sampled_from([1, 5, 8, 1000]))
@settings(max_examples=40, deadline=None)
def test_brier_parts_add_up(seed: int, n: int, n_bins: int) -> None:
    """Brier = reliability - resolution + uncertainty; with a bin for each P resolution is the classic one."""
    y, p, w = sample(seed, n, digits=1)
    result = evaluate(y, p, n_bins=n_bins, sample_weight=w, n_draws=0)
    overall = np.average(y, weights=w)
    parts = result["brier_reliability"] - result["brier_resolution"] + overall * (1 - overall)
    assert result["brier"] == pytest.approx(parts, abs=1e-14)
    if n_bins == 1000:
        shares = [(w[p == s].sum(), np.average(y[p == s], weights=w[p == s])) for s in np.unique(p)]
        classic = sum(mass * (share - overall) ** 2 for mass, share in shares) / w.sum()
        assert result["brier_resolution"] == pytest.approx(classic, abs=1e-12)


def test_evaluate_takes_importance_weights_without_the_floor() -> None:
    """Weights that are not counts are fine for all but the three figures that draw rows."""
    y, p, w = sample(6)
    result = evaluate(y, p, sample_weight=w / 7, n_draws=0)
    assert [name for name in KEYS if math.isnan(result[name])] == ["ece_debiased", "ece_floor", "ece_floor_95"]
    assert result["ece"] == pytest.approx(evaluate(y, p, sample_weight=w)["ece"], abs=1e-12)
    with pytest.raises(InputError, match=r"`sample_weight` must hold whole numbers, how often each row occurs. Got"):
        evaluate(y, p, sample_weight=w / 7)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "label": ({"y_true": [0, 2]}, r"`y_true` must hold only 0 and 1. Got 2.0 at row 1"),
    "probability": ({"y_prob": [0.5, 1.2]}, r"`y_prob` must lie in \[0, 1\]. Got 1.2 at row 1"),
    "nan": ({"y_prob": [float("nan"), 1]}, r"`y_prob` must lie in \[0, 1\]. Got nan at row 0"),
    "length": ({"y_true": [0, 1, 1]}, r"`y_true` must have 2 entries, one a row. Got 3"),
    "weight": ({"sample_weight": [1, -1]}, r"`sample_weight` must be finite and not negative. Got -1.0 at row 1"),
    "bins": ({"n_bins": 0}, r"`n_bins` must be a whole number of at least 1. Got 0"),
    "threshold": ({"threshold": 1.5}, r"`threshold` must lie in \[0, 1\]. Got 1.5"),
    "decision": ({"y_decision": [0, 0.5]}, r"`y_decision` must hold only 0 and 1. Got 0.5 at row 1"),
    "draws": ({"n_draws": -1}, r"`n_draws` must be a whole number of at least 0. Got -1"),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_input_is_an_error_that_says_where(case: str) -> None:
    """Every message names the parameter, what is allowed, and what came."""
    changed, message = BAD[case]
    given_values = {"y_true": [0, 1], "y_prob": [0.2, 0.7], **changed}
    with pytest.raises(InputError, match=message):
        evaluate(given_values.pop("y_true"), given_values.pop("y_prob"), **given_values)


def test_nothing_given_is_changed_and_no_global_state() -> None:
    """Read-only arrays do, and NumPy's global generator is neither used nor seeded."""
    y, p, w = sample(7)
    for array in (y, p, w):
        array.flags.writeable = False
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is what is tested
    evaluate(y, p, sample_weight=w)
    ece_noise_floor(p)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
