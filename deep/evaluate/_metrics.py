"""Metrics of decisions and probabilities on the held-out dataset, on cells."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, Mask, Votes
from deep._odds import DECISION
from deep.calibration import (
    balanced_accuracy,
    bootstrap_balanced_accuracy,
    evaluate,
    netcal_expected_calibration_error,
    precision,
    recall,
)
from deep.evaluate._frames import null_if_nan
from deep.evaluate._result import Row
from deep.features import distinct_patterns
from deep.records import VoteMatrix

METRICS = (
    "balanced_accuracy",
    "balanced_accuracy_ci",
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
)


def decision_metrics(labels: Labels, p: Floats, decisions: Mask, *, n_bins: int, n_boot: int, random_state: int) -> Row:
    """Return every metric of P(consistent), and of decisions that need not be P >= 0.5; null where none is defined.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_examples,)
        -1 where unknown; such rows are left out.
    p : ndarray of float, shape (n_examples,)
    decisions : ndarray of bool, shape (n_examples,)
        Balanced accuracy, precision and recall are theirs.
    n_bins, n_boot, random_state : int
    """
    labeled = labels >= 0
    if not labeled.any():
        return dict.fromkeys(METRICS)
    y, decided = labels[labeled], decisions[labeled]
    interval = bootstrap_balanced_accuracy(y, decided, n_boot=n_boot, random_state=random_state)
    values: Row = {
        **evaluate(y, p[labeled], n_bins=n_bins, random_state=random_state),
        "balanced_accuracy": balanced_accuracy(y, decided),
        "balanced_accuracy_ci": list(interval),
        "precision": precision(y, decided),
        "recall": recall(y, decided),
    }
    return {name: null_if_nan(values[name]) for name in METRICS}


@dataclass(frozen=True, eq=False)
class TestCells:
    """The held-out rows collapsed to vote patterns.

    Parameters
    ----------
    patterns : ndarray of int8, shape (n_patterns, n_voters)
    row_pattern : ndarray of int, shape (n_examples,)
    counts : ndarray of int, shape (n_patterns, 2)
        Labeled rows by pattern and label; zeros where the dataset has no labels.
    """

    __test__ = False  # pytest takes the name for that of a test class

    patterns: Votes
    row_pattern: npt.NDArray[np.intp]
    counts: npt.NDArray[np.int64]

    @classmethod
    def from_votes(cls, votes: VoteMatrix) -> Self:
        """Collapse a held-out vote matrix; rows without a label are scored but not counted."""
        patterns, row_pattern = distinct_patterns(votes.votes)
        labeled = votes.labels >= 0
        cell = row_pattern[labeled] * 2 + votes.labels[labeled]
        return cls(patterns, row_pattern, np.bincount(cell, minlength=2 * len(patterns)).reshape(-1, 2))

    @property
    def labeled(self) -> bool:
        """Return whether any metric can be computed."""
        return bool(self.counts.any())

    def metrics(self, p: Floats, *, n_bins: int, n_boot: int, random_state: int) -> Row:
        """Return every metric of P(consistent) by pattern, null where it is not defined."""
        if not self.labeled:
            return dict.fromkeys(METRICS)
        pattern, label = np.nonzero(self.counts)
        weight, prob = self.counts[pattern, label], p[pattern]
        values = evaluate(label, prob, sample_weight=weight, n_bins=n_bins, random_state=random_state)
        interval = bootstrap_balanced_accuracy(
            label, prob >= DECISION, sample_weight=weight, n_boot=n_boot, random_state=random_state
        )
        found: Row = {**values, "balanced_accuracy_ci": list(interval)}
        return {name: null_if_nan(found[name]) for name in METRICS}

    def netcal_ece(self, p: Floats, *, n_bins: int) -> float:
        """Return netcal's calibration error of P(consistent) by pattern."""
        pattern, label = np.nonzero(self.counts)
        weight = self.counts[pattern, label]
        return netcal_expected_calibration_error(label, p[pattern], n_bins=n_bins, sample_weight=weight)
