"""Bootstrap of balanced accuracy on confusion cells, at a cost that does not grow with the rows."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy import stats

from deep._util import checks
from deep._util.checks import Floats, Labels, Positions, RandomState, Weights
from deep._util.odds import DECISION_P
from deep.calibration._metrics import check_counts, check_whole, checked_scores

if TYPE_CHECKING:
    import pandas as pd


# Differences this close count as equal: the same counts, summed in another order.
DIFFERENCE_TOLERANCE = 1e-12


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
    documents: ArrayLike | None = None,
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
    documents : array-like of shape (n_examples,), optional
        Documents are drawn whole; default: every row is one of its own.
    n_boot : int, default=10_000
        Resamples.
    confidence : float, default=0.95
        Share of the resamples within the interval, in (0, 1).
    random_state : int, Generator or None, default=0
        Seed of the resamples, or what draws them; None draws others at each call.

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
    y, decided = _checked_labels(y_true, decision=decision)
    if documents is not None:
        names, document = checks.factorize(documents)
        cells = _cell_weights(4 * document + 2 * y + decided, 4 * len(names), sample_weight).reshape(-1, 4)
        # Those with the same cells are drawn together: one multinomial draw over the distinct ones is the bootstrap.
        distinct, times = np.unique(cells, axis=0, return_counts=True)
        return _accuracy_interval(_resample_cells(times, n_boot, confidence, random_state) @ distinct, confidence)
    cells = _cell_weights(2 * y + decided, 4, sample_weight)
    if isinstance(random_state, int | np.integer):
        return _known_interval(tuple(cells.tolist()), n_boot, confidence, int(random_state))
    return _accuracy_interval(_resample_cells(cells, n_boot, confidence, random_state), confidence)


def _accuracy_interval(resamples: Floats | npt.NDArray[np.int64], confidence: float) -> tuple[float, float]:
    """Return the interval of balanced accuracy of draws of four cells, (label, decision) in order."""
    wrong0, right0, wrong1, right1 = 1, 0, 2, 3
    sizes = resamples[:, [right0, right1]] + resamples[:, [wrong0, wrong1]]
    has_both = sizes.min(axis=1) > 0
    values = (resamples[has_both][:, [right0, right1]] / sizes[has_both]).mean(axis=1)
    return checks.percentile_interval(values, confidence)


@lru_cache(maxsize=4096)
def _known_interval(cells: tuple[float, ...], n_boot: int, confidence: float, seed: int) -> tuple[float, float]:
    """Return the same, computed once for the chains of a study that come to the same decisions."""
    return _accuracy_interval(_resample_cells(np.array(cells), n_boot, confidence, seed), confidence)


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
    y, a, b = _checked_labels(y_true, decision_a=decision_a, decision_b=decision_b)
    cells = _cell_weights(4 * y + 2 * a + b, 8, sample_weight)
    resamples = _resample_cells(cells, n_boot, confidence, random_state)
    observed = _accuracy_differences(cells[None, :])
    if not len(observed):
        return PairedComparison(float("nan"), checks.percentile_interval(observed, confidence), float("nan"))
    resampled, difference = _accuracy_differences(resamples), float(observed[0])
    # Less the observed difference the resamples are centred at 0, as they would be if the two decided equally well.
    as_far = int(np.sum(np.abs(resampled - difference) >= abs(difference) - DIFFERENCE_TOLERANCE))
    # The sample itself counts as one draw, or p could be 0 (Davison and Hinkley 1997, section 4.2).
    ci = checks.percentile_interval(resampled, confidence)
    return PairedComparison(difference, ci, (as_far + 1) / (len(resampled) + 1))


def _checked_labels(y_true: ArrayLike, **decisions: ArrayLike) -> list[Labels]:
    y = checks.check_labels(y_true, len(np.atleast_1d(np.asarray(y_true))), name="y_true")
    return [y, *(checks.check_labels(values, len(y), name=name) for name, values in decisions.items())]


def _cell_weights(codes: npt.NDArray[np.integer], n_cells: int, sample_weight: Weights) -> Floats:
    weights = checks.check_sample_weight(sample_weight, len(codes))
    return check_counts(checks.bincount(codes, weights, n_cells))


def _resample_cells(
    cells: Floats | Positions, n_boot: int, confidence: float, random_state: RandomState
) -> npt.NDArray[np.int64]:
    """Draw the cells of `n_boot` resamples of as many rows."""
    check_whole(n_boot, least=1, name="n_boot")
    checks.check_share(confidence, "confidence")
    total = cells.sum()
    return np.random.default_rng(random_state).multinomial(int(total), cells / total, size=n_boot)


def _accuracy_differences(cells: npt.NDArray[np.int64] | Floats) -> Floats:
    """Return the difference in balanced accuracy of every row of eight cells that has both classes."""
    n0, n1 = cells[:, :4].sum(axis=1), cells[:, 4:].sum(axis=1)
    has_both = (n0 > 0) & (n1 > 0)
    # The cell of a row is 4 y + 2 a + b. Rows that both have right, or both wrong, cancel out of the difference.
    only_a_right1, only_b_right1 = cells[has_both, 6], cells[has_both, 5]
    only_a_right0, only_b_right0 = cells[has_both, 1], cells[has_both, 2]
    gains: Floats = (only_a_right1 - only_b_right1) / n1[has_both] + (only_a_right0 - only_b_right0) / n0[has_both]
    return gains / 2.0


# Shares of the items, most confident first, that are tested for whether they keep the accuracy.
COVERAGE_LEVELS = np.linspace(0.05, 1.0, 20)

# Shares at which a sequence of tests starts, each with an equal part of the error: with few items a test has little
# power, with many the accuracy is lower.
TEST_START_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class SelectiveThreshold:
    """The confidence below which nothing is decided.

    Parameters
    ----------
    confidence : float or None
        Decide where the P of being right is at least this; None where no share of items is shown to keep the target.
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


def _by_confidence(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: Weights, threshold: float
) -> tuple[Floats, Floats, Floats]:
    """Return distinct confidences, the largest first, with the weight of items and of right decisions."""
    scores = checked_scores(y_true, y_prob, sample_weight)
    positive = scores.p >= threshold
    confidence = np.where(positive, scores.p, 1.0 - scores.p)
    right = np.where(positive, scores.n1, scores.n - scores.n1)
    distinct, where = np.unique(-confidence, return_inverse=True)
    return -distinct, checks.bincount(where, scores.n, len(distinct)), checks.bincount(where, right, len(distinct))


def risk_coverage(
    y_true: ArrayLike, y_prob: ArrayLike, *, threshold: float = DECISION_P, sample_weight: Weights = None
) -> "pd.DataFrame":
    """Return the share of wrong decisions among the most confident items, for every share of them.

    Parameters
    ----------
    y_true : array-like of shape (n_examples,)
        Labels 0/1.
    y_prob : array-like of shape (n_examples,)
        P(consistent), in [0, 1].
    threshold : float, default=0.5
        The P from which on an item is called consistent, with confidence p; below it, with confidence 1 - p.
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

    confidence, n, right = _by_confidence(y_true, y_prob, sample_weight, threshold)
    decided = np.cumsum(n)
    risk = 1.0 - np.cumsum(right) / decided
    return pd.DataFrame({"confidence": confidence, "coverage": decided / decided[-1], "risk": np.abs(risk)})


def selective_threshold(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    target: float,
    *,
    delta: float = 0.1,
    threshold: float = DECISION_P,
    sample_weight: Weights = None,
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
        The chance, over the draw of the labeled items, that the promise does not hold.
    threshold : float, default=0.5
        As in :func:`risk_coverage`.
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
    >>> result = selective_threshold([1, 0, 1, 0], [0.95, 0.05, 0.6, 0.6], 0.9, sample_weight=[60, 50, 30, 30])
    >>> result.confidence, round(result.coverage, 2), result.accuracy
    (0.95, 0.65, 1.0)
    """
    for name, value in (("target", target), ("delta", delta)):
        checks.check_share(value, name)
    confidence, n, right = _by_confidence(y_true, y_prob, sample_weight, threshold)
    decided, hits = np.cumsum(check_counts(n)), np.cumsum(right)
    last = _last_that_passes(decided, hits, target, delta)
    if last is None:
        return SelectiveThreshold(None, 0.0, float("nan"), float("nan"))
    low = _lower_bound(decided[last], hits[last], delta / len(TEST_START_SHARES))
    return SelectiveThreshold(
        float(confidence[last]), float(decided[last] / decided[-1]), float(hits[last] / decided[last]), low
    )


def _last_that_passes(decided: Floats, hits: Floats, target: float, delta: float) -> int | None:
    """Return the position of the largest share that passes; None where none does."""
    passed = []
    for start in TEST_START_SHARES:
        # `linspace` makes 0.49999999999999994 of 0.5, which must still start the sequence at 0.5.
        levels = COVERAGE_LEVELS[start - 1e-9 <= COVERAGE_LEVELS]
        for position in np.unique(np.searchsorted(decided, levels * decided[-1] - 1e-9)):
            # Fixed sequence testing: what comes behind the first failure is never tested, or the chance of a wrong
            # level would exceed delta. The sequences share delta by Bonferroni (arXiv:2110.01052).
            if _lower_bound(decided[position], hits[position], delta / len(TEST_START_SHARES)) < target:
                break
            passed.append(int(position))
    return max(passed, default=None)


def _lower_bound(n: float, hits: float, delta: float) -> float:
    # Clopper and Pearson's exact bound: it holds for few items too, where the normal one is too high.
    return float(stats.beta.ppf(delta, hits, n - hits + 1)) if hits else 0.0
