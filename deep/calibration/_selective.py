"""Decide only where confident: risk against coverage, and a confidence that keeps an accuracy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from deep._checks import Floats, Weights, weigh
from deep._odds import DECISION
from deep.calibration._scores import check_counts, check_inside, checked_scores

if TYPE_CHECKING:
    import pandas as pd


LEVELS = np.linspace(0.05, 1.0, 20)
"""Shares of the items, most confident first, that are tested for whether they keep the accuracy."""

STARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares at which a sequence of tests starts, each with an equal part of the error: with few items a test has little
power, with many the accuracy is lower."""


@dataclass(frozen=True)
class SelectiveThreshold:
    """The confidence below which nothing is decided.

    Parameters
    ----------
    confidence : float or None
        Decide where max(p, 1 - p) is at least this; None where no share of the items can be shown to keep the target.
    coverage : float
        Share of the labeled items that are decided, in [0, 1].
    accuracy : float
        Of the decisions on them; NaN where there are none.
    accuracy_low : float
        One-sided lower bound of it by Clopper and Pearson, at level 1 - delta / 5; NaN where there are none.
    """

    confidence: float | None
    coverage: float
    accuracy: float
    accuracy_low: float


def _by_confidence(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights) -> tuple[Floats, Floats, Floats]:
    """Return distinct confidences, the largest first, with the weight of items and of right decisions."""
    scores = checked_scores(y_true, y_prob, sample_weight)
    positive = scores.p >= DECISION
    confidence = np.where(positive, scores.p, 1.0 - scores.p)
    right = np.where(positive, scores.n1, scores.n - scores.n1)
    distinct, where = np.unique(-confidence, return_inverse=True)
    return -distinct, weigh(where, scores.n, len(distinct)), weigh(where, right, len(distinct))


def risk_coverage(y_true: ArrayLike, y_prob: ArrayLike, *, sample_weight: Weights = None) -> "pd.DataFrame":
    """Return the share of wrong decisions among the most confident items, for every share of them.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1]; decided at 0.5, with confidence max(p, 1 - p).
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.

    Returns
    -------
    DataFrame
        ``confidence, coverage, risk``, a row a distinct confidence, the largest first; `coverage` ends at 1.

    Examples
    --------
    >>> from deep.calibration import risk_coverage
    >>> print(risk_coverage([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.4]).round(2).to_string(index=False))
     confidence  coverage  risk
            0.9      0.25  0.00
            0.8      0.50  0.00
            0.7      0.75  0.00
            0.6      1.00  0.25
    """
    import pandas as pd

    confidence, n, right = _by_confidence(y_true, y_prob, sample_weight)
    decided = np.cumsum(n)
    risk = 1.0 - np.cumsum(right) / decided
    return pd.DataFrame({"confidence": confidence, "coverage": decided / decided[-1], "risk": np.abs(risk)})


def selective_threshold(
    y_true: ArrayLike, y_prob: ArrayLike, target: float, *, delta: float = 0.1, sample_weight: Weights = None
) -> SelectiveThreshold:
    """Return the confidence from which on decisions are right at least as often as wanted.

    Shares of the items, most confident first, are tested for an accuracy above the target by an exact binomial test:
    from each of five starts (10 %, 30 %, 50 %, 70 %, 90 %) in steps of 5 % until one fails, with a fifth of `delta`
    each (fixed sequence testing with several starts, after [1]_). The largest share that passes is decided.

    With probability 1 - delta over the draw of the labeled items, decisions at this confidence are right at least at
    the `target` rate on items drawn like them. Nothing is promised on other data.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1 of a random sample of the items to decide on, not used to fit `y_prob`.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1].
    target : float in (0, 1)
        Wanted share of right decisions.
    delta : float in (0, 1), default=0.1
    sample_weight : array-like of shape (n_examples,), optional
        How often each row occurs, a whole number; default 1 each.

    Returns
    -------
    SelectiveThreshold

    Raises
    ------
    InputError
        `target` or `delta` is not in (0, 1), or a weight is no whole number.

    References
    ----------
    .. [1] Angelopoulos et al. (2021), "Learn then Test". https://arxiv.org/abs/2110.01052

    Examples
    --------
    >>> from deep.calibration import selective_threshold
    >>> found = selective_threshold([1, 0, 1, 0], [0.95, 0.05, 0.6, 0.6], 0.9, sample_weight=[60, 50, 30, 30])
    >>> found.confidence, round(found.coverage, 2), found.accuracy
    (0.95, 0.65, 1.0)
    """
    for name, value in (("target", target), ("delta", delta)):
        check_inside(value, name)
    confidence, n, right = _by_confidence(y_true, y_prob, sample_weight)
    decided, hits = np.cumsum(check_counts(n)), np.cumsum(right)
    last = _last_that_passes(decided, hits, target, delta)
    if last is None:
        return SelectiveThreshold(None, 0.0, float("nan"), float("nan"))
    low = _lower_bound(decided[last], hits[last], delta / len(STARTS))
    return SelectiveThreshold(
        float(confidence[last]), float(decided[last] / decided[-1]), float(hits[last] / decided[last]), low
    )


def _last_that_passes(decided: Floats, hits: Floats, target: float, delta: float) -> int | None:
    """Return the position of the largest share that passes; None where none does."""
    passed = []
    for start in STARTS:
        levels = LEVELS[start - 1e-9 <= LEVELS]
        for position in np.unique(np.searchsorted(decided, levels * decided[-1] - 1e-9)):
            if _lower_bound(decided[position], hits[position], delta / len(STARTS)) < target:
                break
            passed.append(int(position))
    return max(passed, default=None)


def _lower_bound(n: float, hits: float, delta: float) -> float:
    return float(stats.beta.ppf(delta, hits, n - hits + 1)) if hits else 0.0
