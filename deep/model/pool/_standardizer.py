"""Soft votes in any unit on one scale, and which scorer is strongest."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from deep._checks import Floats
from deep._odds import logit
from deep.features import weigh
from deep.model.linear import LabeledRows

SHARE_CLIP = 0.01
"""A score or its rank is held within [SHARE_CLIP, 1 - SHARE_CLIP]: an extreme score is no more than extreme."""

MAX_KNOTS = 500


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

    knots: list[tuple[Floats, Floats]]
    centre: Floats
    scale: Floats

    def __call__(self, scores: Floats) -> Floats:
        """Return standardised scores, shape (n_examples, n_scorers)."""
        return np.nan_to_num((_log_odds(scores, self.knots) - self.centre) / self.scale, nan=0.0)


def fit_standardizer(scores: Floats, weights: Floats) -> Standardizer:
    """Learn what scores of each column stand for.

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
    values = _log_odds(scores, knots)
    known = ~np.isnan(values)
    total = np.maximum((known * weights[:, None]).sum(axis=0), 1e-12)
    centre = (np.where(known, values, 0.0) * weights[:, None]).sum(axis=0) / total
    apart = np.where(known, values - centre, 0.0)
    scale = np.sqrt((apart**2 * weights[:, None]).sum(axis=0) / total)
    return Standardizer(knots, centre, np.where(scale > 0, scale, 1.0))


def _log_odds(scores: Floats, knots: list[tuple[Floats, Floats]]) -> Floats:
    shares = np.column_stack([np.interp(scores[:, j], *pair) for j, pair in enumerate(knots)])
    return logit(shares, clip=SHARE_CLIP)


def _knots(column: Floats, weights: Floats) -> tuple[Floats, Floats]:
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
