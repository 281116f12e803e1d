"""From a member's score to a log-odds at equal class weights, learned on datasets that the member never saw."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deep._checks import Floats
from deep._logistic import fit_logistic
from deep._odds import expit, logit

JITTER = 1e-9
"""Added to a penalty's diagonal: a direction without data or penalty stays where it started."""

TOLERANCE = 1e-18
"""Of Newton's steps: alignments are compared by losses that differ little, so the last step is below 1e-9."""

RIDGE = 4e-3
"""Pull of slope towards 1 and of context towards 0, against a mean log loss: felt where datasets are few."""

N_BINS = 256
"""A dataset's scores are kept as so many equal-weight points: slopes differ by less than 0.1 %."""

SHARE_CLIP = 0.02
"""A dataset's mean P is held within [SHARE_CLIP, 1 - SHARE_CLIP]: nearer to 0 or 1 says nothing more of its prior."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A member's log-odds on one dataset, by a fit that never saw it.

    Parameters
    ----------
    score : ndarray of float, shape (n_points,)
    ones, zeros : ndarray of float, shape (n_points,)
        Weight of label 1 and of label 0 at each point.
    """

    score: Floats
    ones: Floats
    zeros: Floats

    @classmethod
    def from_rows(cls, score: Floats, ones: Floats, zeros: Floats) -> "LeftOut":
        """Merge rows into at most `N_BINS` points of about equal weight."""
        order = np.argsort(score, kind="stable")
        score, ones, zeros = score[order], ones[order], zeros[order]
        total = np.cumsum(ones + zeros)
        value = np.concatenate([[True], score[1:] != score[:-1]])
        distinct = np.flatnonzero(value)
        if len(distinct) <= N_BINS:
            start = distinct
        else:
            wanted = np.searchsorted(total[distinct], np.arange(N_BINS) * total[-1] / N_BINS)
            start = distinct[np.unique(np.minimum(wanted, len(distinct) - 1))]
            start[0] = 0
        n1, n0 = np.add.reduceat(ones, start), np.add.reduceat(zeros, start)
        weighted = np.add.reduceat(score * (ones + zeros), start)
        kept = n1 + n0 > 0
        return cls((weighted[kept] / (n1 + n0)[kept]), n1[kept], n0[kept])

    @cached_property
    def context(self) -> float:
        """Return the log-odds of the mean P over the whole dataset: needs no label."""
        return context_of(self.score, self.ones + self.zeros)

    @cached_property
    def prior(self) -> float:
        """Return the share of label 1."""
        return float(self.ones.sum() / (self.ones.sum() + self.zeros.sum()))

    @cached_property
    def class_means(self) -> tuple[float, float]:
        """Return the mean P in class 0 and in class 1."""
        ones, zeros = self.classes()
        p = expit(self.score)
        return float(zeros @ p), float(ones @ p)

    def classes(self) -> tuple[Floats, Floats]:
        """Return the weights of label 1 and of label 0, each summing to 1."""
        return self.ones / self.ones.sum(), self.zeros / self.zeros.sum()


def context_of(score: Floats, weights: Floats) -> float:
    """Return the log-odds of the mean P of a dataset's scores.

    Examples
    --------
    >>> round(context_of(np.array([-1.0, 1.0]), np.array([1.0, 1.0])), 6)
    0.0
    """
    return context_of_mean(float(weights @ expit(score) / weights.sum()))


def context_of_mean(p: float) -> float:
    """Return the log-odds of a mean P, held away from 0 and 1."""
    return float(logit(p, clip=SHARE_CLIP))


@dataclass(frozen=True)
class Alignment:
    """log-odds = intercept + slope * score + context * (log-odds of the dataset's mean P).

    Parameters
    ----------
    intercept, slope, context : float
        `context` is below 0: where a member finds a whole dataset consistent, part of that is leniency.
    """

    intercept: float
    slope: float
    context: float

    def __call__(self, score: Floats, context: float) -> Floats:
        """Return log-odds at equal class weights."""
        return np.asarray(self.intercept + self.slope * score + self.context * context)


def fit_alignment(datasets: list[LeftOut], *, use_context: bool) -> Alignment:
    """Fit a logistic regression of the label on score and dataset context, every dataset x class weighing the same.

    Parameters
    ----------
    datasets : list of LeftOut
    use_context : bool
        Whether the mean over the dataset enters.

    Notes
    -----
    The within-between form of Mundlak: a score's effect within a dataset and that of the dataset's mean are
    allowed to differ [1]_. Were a mean raised by the labels alone, the context would get 0.

    References
    ----------
    .. [1] Y. Mundlak, "On the pooling of time series and cross section data", Econometrica 46, 1978.
       https://doi.org/10.2307/1913646
    """
    score = np.concatenate([one.score for one in datasets])
    contexts = np.array([one.context for one in datasets])
    columns = [score]
    if use_context:
        columns.append(np.repeat(contexts - contexts.mean(), [len(one.score) for one in datasets]))
    shares = [one.classes() for one in datasets]
    ones, zeros = (np.concatenate([pair[c] for pair in shares]) for c in (0, 1))
    centre = np.array([1.0, 0.0])[: len(columns)]
    penalty = RIDGE * np.eye(len(columns))
    slope, *context = newton_logistic(np.column_stack(columns), ones, zeros, centre=centre, penalty=penalty).tolist()
    if slope <= 0:
        return Alignment(0.0, 0.0, 0.0)
    effect = context[0] if context else 0.0
    return Alignment(-effect * float(contexts.mean()), slope, effect)


def newton_logistic(design: Floats, ones: Floats, zeros: Floats, *, centre: Floats, penalty: Floats) -> Floats:
    """Return the coefficients that minimise mean log loss plus half the quadratic form of `penalty` about `centre`.

    Parameters
    ----------
    design : ndarray of shape (n_points, n_coefficients)
    ones, zeros : ndarray of shape (n_points,)
        Weight of label 1 and of label 0; the loss is divided by their sum.
    centre : ndarray of shape (n_coefficients,)
    penalty : ndarray of shape (n_coefficients, n_coefficients)

    Examples
    --------
    >>> design = np.column_stack([np.ones(2), [-1.0, 1.0]])
    >>> weights = np.array([1.0, 3.0]), np.array([3.0, 1.0])
    >>> newton_logistic(design, *weights, centre=np.zeros(2), penalty=np.zeros((2, 2)))[1].round(3).item()
    1.099
    """
    weight = ones + zeros
    total = weight.sum()
    penalty = penalty + JITTER * np.eye(len(centre))
    return fit_logistic(
        design, weight / total, ones / total, centre=centre, penalty=penalty, start=centre, tolerance=TOLERANCE
    )


def balanced_log_loss(log_odds: Floats, dataset: LeftOut) -> float:
    """Return the mean log loss of log-odds at the dataset's points, both classes weighing the same."""
    ones, zeros = dataset.classes()
    return float(ones @ np.logaddexp(0.0, -log_odds) + zeros @ np.logaddexp(0.0, log_odds)) / 2
