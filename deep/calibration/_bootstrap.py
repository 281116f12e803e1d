"""Bootstrap of balanced accuracy on confusion cells, at a cost that does not grow with the rows."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from deep._checks import Floats, Labels, RandomState, Weights, check_labels, check_sample_weight, weigh
from deep.calibration._scores import check_counts, check_inside, check_whole

TIE = 1e-12
"""Differences this close count as equal: the same counts, summed in another order."""


class PairedComparison(NamedTuple):
    """Balanced accuracy of one set of decisions less that of another, on the same rows.

    Parameters
    ----------
    difference : float
        In [-1, 1]; positive where the first is better.
    ci : tuple of float
        Bootstrap interval of the difference.
    p : float
        Two-sided p-value of no difference, at least 1 / (n_boot + 1).
    """

    difference: float
    ci: tuple[float, float]
    p: float


def bootstrap_balanced_accuracy(
    y_true: ArrayLike,
    decision: ArrayLike,
    *,
    sample_weight: Weights = None,
    n_boot: int = 10_000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of balanced accuracy.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    decision : array-like of shape (n_examples,)
        Decisions 0/1.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row occurs, a whole number; default 1 each.
    n_boot : int, default=10_000
        Resamples.
    confidence : float, default=0.95
        Share of the resamples within the interval, in (0, 1).
    random_state : int, Generator or None, default=0

    Returns
    -------
    low, high : float
        In [0, 1]; nan where a class is missing.

    Raises
    ------
    InputError
        A value is out of range, lengths differ, or a weight is not a whole number.

    Notes
    -----
    Resampling rows with replacement is one multinomial draw over the four cells (label, decision). Rows are
    not stratified by class, so the numbers of either class vary as in a new sample; the rare resample that
    lacks a class has no balanced accuracy and is left out.

    Examples
    --------
    >>> from deep.calibration import bootstrap_balanced_accuracy
    >>> low, high = bootstrap_balanced_accuracy([1, 1, 0, 0], [1, 0, 0, 1], sample_weight=[200, 85, 180, 93])
    >>> round(low, 2), round(high, 2)
    (0.64, 0.72)
    """
    y, decided = _labels(y_true, decision=decision)
    cells = _cells(2 * y + decided, 4, sample_weight)
    if isinstance(random_state, int | np.integer):
        return _known_interval(tuple(cells.tolist()), n_boot, confidence, int(random_state))
    return _balanced_interval(cells, n_boot, confidence, random_state)


def _balanced_interval(cells: Floats, n_boot: int, confidence: float, random_state: RandomState) -> tuple[float, float]:
    """Return the interval of balanced accuracy of four cells, (label, decision) in order."""
    wrong0, right0, wrong1, right1 = 1, 0, 2, 3
    drawn = _resample(cells, n_boot, random_state)
    sizes = drawn[:, [right0, right1]] + drawn[:, [wrong0, wrong1]]
    kept = sizes.min(axis=1) > 0
    values = (drawn[kept][:, [right0, right1]] / sizes[kept]).mean(axis=1)
    return _interval(values, confidence)


@lru_cache(maxsize=4096)
def _known_interval(cells: tuple[float, ...], n_boot: int, confidence: float, seed: int) -> tuple[float, float]:
    """Return the same, computed once for the chains of a study that come to the same decisions."""
    return _balanced_interval(np.array(cells), n_boot, confidence, seed)


def paired_bootstrap(
    y_true: ArrayLike,
    decision_a: ArrayLike,
    decision_b: ArrayLike,
    *,
    sample_weight: Weights = None,
    n_boot: int = 10_000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> PairedComparison:
    """Compare the balanced accuracy of two sets of decisions on the same rows.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    decision_a, decision_b : array-like of shape (n_examples,)
        Decisions 0/1 of the two.
    sample_weight, n_boot, confidence, random_state
        As in :func:`bootstrap_balanced_accuracy`. For m comparisons at level alpha by Bonferroni, `n_boot`
        must exceed m / alpha, or no p can be small enough.

    Returns
    -------
    PairedComparison
        All nan where a class is missing.

    Raises
    ------
    InputError
        A value is out of range, lengths differ, or a weight is not a whole number.

    Notes
    -----
    Rows are resampled with both their decisions: one multinomial draw over the eight cells (label, decision
    a, decision b), not stratified; a resample that lacks a class is left out. The p-value is
    (r + 1) / (B + 1), where r of the B resamples lie at least as far from the observed difference as that
    lies from 0: the resampled differences, moved to centre on 0, stand for what chance alone would give. Two
    equal sets of decisions have p = 1.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 16.
       https://doi.org/10.1201/9780429246593

    Examples
    --------
    >>> from deep.calibration import paired_bootstrap
    >>> labels, a, b = [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0]
    >>> result = paired_bootstrap(labels, a, b, sample_weight=[60, 25, 15, 70, 20, 10])
    >>> round(result.difference, 3), result.p < 0.05
    (0.1, True)
    """
    y, a, b = _labels(y_true, decision_a=decision_a, decision_b=decision_b)
    cells = _cells(4 * y + 2 * a + b, 8, sample_weight)
    drawn = _resample(cells, n_boot, random_state)
    observed = _differences(cells[None, :])
    if not len(observed):
        return PairedComparison(float("nan"), _interval(observed, confidence), float("nan"))
    resampled, difference = _differences(drawn), float(observed[0])
    as_far = int(np.sum(np.abs(resampled - difference) >= abs(difference) - TIE))
    return PairedComparison(difference, _interval(resampled, confidence), (as_far + 1) / (len(resampled) + 1))


def _labels(y_true: ArrayLike, **decisions: ArrayLike) -> list[Labels]:
    y = check_labels(y_true, len(np.atleast_1d(np.asarray(y_true))), name="y_true")
    return [y, *(check_labels(values, len(y), name=name) for name, values in decisions.items())]


def _cells(codes: Labels, n_cells: int, sample_weight: Weights) -> Floats:
    weights = check_sample_weight(sample_weight, len(codes))
    return check_counts(weigh(codes, weights, n_cells))


def _resample(cells: Floats, n_boot: int, random_state: RandomState) -> npt.NDArray[np.int64]:
    """Draw the cells of `n_boot` resamples of as many rows."""
    check_whole(n_boot, least=1, name="n_boot")
    total = cells.sum()
    return np.random.default_rng(random_state).multinomial(int(total), cells / total, size=n_boot)


def _differences(cells: npt.NDArray[np.int64] | Floats) -> Floats:
    """Return the difference in balanced accuracy of every row of eight cells that has both classes."""
    n0, n1 = cells[:, :4].sum(axis=1), cells[:, 4:].sum(axis=1)
    kept = (n0 > 0) & (n1 > 0)
    only_a_right1, only_b_right1 = cells[kept, 6], cells[kept, 5]
    only_a_right0, only_b_right0 = cells[kept, 1], cells[kept, 2]
    gains: Floats = (only_a_right1 - only_b_right1) / n1[kept] + (only_a_right0 - only_b_right0) / n0[kept]
    return gains / 2.0


def _interval(values: Floats, confidence: float) -> tuple[float, float]:
    check_inside(confidence, "confidence")
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(low), float(high)
