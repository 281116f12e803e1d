"""Metrics of decisions and probabilities on the held-out dataset, on cells."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Votes
from deep._odds import DECISION
from deep.calibration import bootstrap_balanced_accuracy, evaluate
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
