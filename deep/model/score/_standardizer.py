"""Soft votes in any unit on one scale, and which scorer is strongest."""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from deep._checks import Floats, weigh
from deep._odds import logit
from deep.model.linear import LabeledRows

SHARE_CLIP = 0.01
"""A score or its rank is held within [SHARE_CLIP, 1 - SHARE_CLIP]: an extreme score is no more than extreme."""

MAX_KNOTS = 500

Knots = tuple[Floats, Floats]
"""Scores, ascending, and the shares that they stand for."""


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Maps each column of scores to log-odds, centred and scaled; no score gives 0.

    Scores that all lie in [0, 1] are taken for probabilities. Others, in whatever unit, become their rank among
    the training rows.

    Parameters
    ----------
    knots : list of (scores, ranks)
        One a column, both ascending.
    centre, scale : ndarray of shape (n_scorers,)
    """

    knots: list[Knots]
    centre: Floats
    scale: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Return standardised scores, shape (n_examples, n_scorers)."""
        return self.of_log_odds(log_odds_of(scores, range(len(self.knots)), self.knots))

    def of_log_odds(self, values: Floats) -> Floats:
        """Return standardised scores from the log-odds of :func:`log_odds_of`."""
        found = values - self.centre
        found /= self.scale
        missing = np.isnan(found)
        if missing.any():
            found[missing] = 0.0
        return np.asarray(found)


def fit_standardizer(scores: Floats, weights: Floats) -> Standardizer:
    """Learn the scale of each column of scores.

    Parameters
    ----------
    scores : ndarray of float, shape (n_examples, n_scorers)
        In any unit; NaN where there is none.
    weights : ndarray of float, shape (n_examples,)

    Examples
    --------
    >>> ranks = fit_standardizer(np.array([[1.0], [2.0], [9.0]]), np.ones(3))
    >>> ranks(np.array([[2.0], [9.5], [np.nan]])).round(2).ravel().tolist()
    [-0.0, 1.22, 0.0]
    """
    knots = [_knots(column, weights) for column in scores.T]
    values = log_odds_of(scores, range(len(knots)), knots)
    known = ~np.isnan(values)
    total = np.maximum((known * weights[:, None]).sum(axis=0), 1e-12)
    centre = (np.where(known, values, 0.0) * weights[:, None]).sum(axis=0) / total
    apart = np.where(known, values - centre, 0.0)
    scale = np.sqrt((apart**2 * weights[:, None]).sum(axis=0) / total)
    return Standardizer(knots, centre, np.where(scale > 0, scale, 1.0))


def log_odds_of(scores: Floats, columns: Sequence[int], knots: Sequence[Knots]) -> Floats:
    """Return the log-odds of the shares that scores of some columns stand for; NaN where there is no score."""
    shares = [
        scores[:, j] if _are_shares(pair) else np.interp(scores[:, j], *pair)
        for j, pair in zip(columns, knots, strict=True)
    ]
    return logit(np.array(shares).T, clip=SHARE_CLIP)


def _are_shares(knots: Knots) -> bool:
    """Say whether scores stand for themselves: beyond [0, 1] they are held all the same."""
    return all(len(values) == 2 and values[0] == 0 and values[1] == 1 for values in knots)


def _knots(column: Floats, weights: Floats) -> Knots:
    """Return scores and the shares they stand for: themselves where they are shares, else their ranks."""
    known = ~np.isnan(column)
    if not known.any() or (column[known].min() >= 0 and column[known].max() <= 1):
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    values, where = np.unique(column[known], return_inverse=True)
    weight = weigh(where, weights[known])
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(values) > MAX_KNOTS:
        kept = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], MAX_KNOTS)))
        values, middle = values[kept], middle[kept]
    return values, middle


def strongest(train: LabeledRows, n: int) -> list[int]:
    """Return the `n` scorers whose mean area under the ROC curve over training datasets is furthest from a half."""
    if train not in _AREAS:
        _AREAS[train] = _areas(train)
    apart = np.abs(_AREAS[train] - len(train.present()) / 2)
    return [int(j) for j in np.argsort(-apart, kind="stable")[:n]]


_AREAS: WeakKeyDictionary[LabeledRows, Floats] = WeakKeyDictionary()
"""Of rows that are still in use: two members ask for the same."""


def _areas(train: LabeledRows) -> Floats:
    """Return the sum over training datasets of each scorer's area under the ROC curve, shape (n_scorers,)."""
    areas = np.zeros(train.scores.shape[1])
    for group in train.present():
        rows, ones, zeros = train.by_class(group)
        areas += [_area(column, ones, zeros) for column in rows.scores.T]
    return areas


def _area(column: Floats, ones: Floats, zeros: Floats) -> float:
    """Return P(score of a consistent row > that of an inconsistent one), ties and no score counting half."""
    known = ~np.isnan(column)
    value = np.where(known, column, np.nanmedian(column) if known.any() else 0.0)
    _, where = np.unique(value, return_inverse=True)
    ones, zeros = weigh(where, ones), weigh(where, zeros)
    return float(ones @ (np.cumsum(zeros) - zeros / 2))
