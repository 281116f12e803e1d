"""Paired tests of the recommended chain: enough resamples, Bonferroni, and no rival that saw the test labels."""

import numpy as np
import pytest

from deep import calibration
from deep.experiments.loo import _rivals
from deep.experiments.loo._rivals import Baseline


def baseline(kind, decisions, threshold_from=None):
    """Return a baseline with these decisions."""
    return Baseline(f"{kind}-{threshold_from}", kind, np.asarray(decisions, dtype=bool), threshold_from, None)


def test_rivals_never_saw_the_test_labels():
    """Thresholds optimised on the test set and single prompts are no rivals; the training-chosen are."""
    every = [
        baseline("prompt", [1]),
        baseline("best_prompt", [1]),
        baseline("best_judge_context", [1]),
        baseline("majority", [1]),
        *(baseline("encoder", [1], origin) for origin in ("test", "center", "train")),
    ]
    assert [r.name for r in _rivals.rivals(every)] == [
        "best_prompt-None",
        "best_judge_context-None",
        "majority-None",
        "encoder-train",
    ]


def test_clear_and_absent_differences():
    """A perfect chain beats a coin significantly, and does not beat its equal."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400).astype(np.int8)
    coin = rng.random(400) < 0.5
    rows = _rivals.compare(
        y == 1, y, [baseline("best_prompt", coin), baseline("majority", y == 1)], n_boot=1000, random_state=0
    )
    assert rows[0]["significant"]
    assert rows[0]["difference"] == pytest.approx(0.5, abs=0.1)
    assert rows[0]["ci"][0] < rows[0]["difference"] < rows[0]["ci"][1]
    assert not rows[1]["significant"]
    assert rows[1]["difference"] == 0
    assert all(row["p_bonferroni"] == min(1.0, 2 * row["p"]) for row in rows)


def test_resamples_grow_with_the_number_of_tests(monkeypatch):
    """With m tests at least 200 m resamples are drawn, so that p can pass the corrected level."""
    asked = []
    original = calibration.paired_bootstrap
    monkeypatch.setattr(
        calibration, "paired_bootstrap", lambda *a, **k: (asked.append(k["n_boot"]), original(*a, **k))[1]
    )
    y = np.array([0, 1] * 20, dtype=np.int8)
    differing = [baseline("encoder", np.arange(40) < k, "train") for k in range(7)]
    _rivals.compare(y == 1, y, differing, n_boot=100, random_state=0)
    assert asked == [1400] * 7


def test_tests_are_corrected_over_datasets_too(monkeypatch):
    """With one rival on eleven datasets p is corrected eleven-fold, and enough resamples are drawn for that."""
    asked = []
    original = calibration.paired_bootstrap
    monkeypatch.setattr(
        calibration, "paired_bootstrap", lambda *a, **k: (asked.append(k["n_boot"]), original(*a, **k))[1]
    )
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200).astype(np.int8)
    rival = baseline("majority", np.where(rng.random(200) < 0.07, 1 - y, y))
    (row,) = _rivals.compare(y == 1, y, [rival], n_boot=100, random_state=0, n_datasets=11)
    assert asked == [2200]
    assert row["p_bonferroni"] == row["p"]
    assert row["p_bonferroni_datasets"] == min(1, 11 * row["p"])
    assert (row["significant"], row["significant_datasets"]) == (row["p"] < 0.01, 11 * row["p"] < 0.01)


def test_no_labels_no_tests():
    """Without both classes among the labels there is nothing to test."""
    assert (
        _rivals.compare(np.array([True]), np.array([-1]), [baseline("majority", [1])], n_boot=100, random_state=0) == []
    )
