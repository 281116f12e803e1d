"""How far P(consistent) may be off on a dataset that the chain has never seen."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import P_MIN, Floats

__all__ = ["LEVEL", "MIN_FOLDS", "Transfer", "interval", "learn_transfer"]

LEVEL = 0.9
"""The share of new datasets' cells that an interval is meant to hold."""

MIN_FOLDS = 3
"""Fewer training datasets than this say nothing of how far they lie apart."""

MIN_ROWS = 5
"""Cells with fewer rows are too noisy to add to the spread."""

WIDEST = 100.0


@dataclass(frozen=True)
class Transfer:
    """What leaving each training dataset out tells of a dataset never seen.

    Parameters
    ----------
    level : float
        Nominal coverage of the intervals.
    shifts : dict of str to float
        By training dataset: what must be added to the log-odds of fits without it, to be right on average there
        with both classes weighing the same.
    spread : float
        Standard deviation, in log-odds, of a cell's true rate on a left-out dataset around P, beyond the noise
        of counting.
    quantile : float
        Of Student's t with (number of folds - 1) degrees of freedom, at the level.
    """

    level: float
    shifts: dict[str, float]
    spread: float
    quantile: float


def learn_transfer(
    left_out: Floats, counts: npt.NDArray[np.int64], datasets: tuple[str, ...], n_folds: int
) -> Transfer:
    """Learn from each training dataset how far the fits without it were off.

    Parameters
    ----------
    left_out : ndarray of float, shape (n_patterns, n_datasets)
        P(consistent) of each pattern by the chain fitted without the dataset.
    counts : ndarray of int, shape (n_patterns, n_datasets, 2)
        Rows by pattern, dataset and label.
    datasets : tuple of str
    n_folds : int
        How many of them are independent: datasets with common documents share a fold.

    Returns
    -------
    Transfer

    Notes
    -----
    The spread is the root of Paule and Mandel's equation: squared deviations of the cells' log-odds, over the
    variance of counting plus the spread squared, average 1, each dataset weighing the same [1]_. Log-odds are
    those of cells as they would be if both classes of the dataset were equally frequent.

    References
    ----------
    .. [1] R. C. Paule and J. Mandel, "Consensus values and weighting factors", J. Res. NBS 87, 1982.
       https://doi.org/10.6028/jres.087.022
    """
    from scipy.special import logit
    from scipy.stats import t as student

    shifts, deviations = {}, []
    for column, name in enumerate(datasets):
        cell = counts[:, column]
        predicted = logit(np.clip(left_out[:, column], P_MIN, 1 - P_MIN))
        shifts[name] = _shift(predicted, cell)
        deviations.append(_deviations(predicted, cell))
    quantile = float(student.ppf((1 + LEVEL) / 2, n_folds - 1))
    return Transfer(LEVEL, shifts, _spread([pair for pair in deviations if len(pair[0])]), quantile)


def _shift(predicted: Floats, counts: npt.NDArray[np.int64]) -> float:
    """Return what added to log-odds makes their mean P the share of label 1, at equal class weights."""
    from scipy.optimize import brentq
    from scipy.special import expit

    weights = counts / np.maximum(counts.sum(axis=0), 1) / 2
    total = weights.sum(axis=1)

    def gap(shift: float) -> float:
        return float(weights[:, 1].sum() - total @ expit(predicted + shift))

    return float(brentq(gap, -WIDEST, WIDEST))


def _deviations(predicted: Floats, counts: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return observed minus predicted log-odds of cells, and the variance of counting."""
    kept = counts.sum(axis=1) >= MIN_ROWS
    n = counts[kept] + 0.5
    totals = counts.sum(axis=0)
    observed = np.log(n[:, 1] / n[:, 0]) - np.log(totals[1] / totals[0])
    return observed - predicted[kept], (1.0 / n).sum(axis=1)


def _spread(deviations: list[tuple[Floats, Floats]]) -> float:
    from scipy.optimize import brentq

    if not deviations:
        return 0.0

    def excess(spread: float) -> float:
        return float(np.mean([np.mean(gap**2 / (noise + spread**2)) for gap, noise in deviations])) - 1.0

    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, WIDEST))


def interval(p: Floats, left_out: Floats, transfer: Transfer) -> tuple[Floats, Floats]:
    """Return the bounds between which a pattern's rate on a new dataset is expected, at equal class weights.

    Parameters
    ----------
    p : ndarray of float, shape (n_patterns,)
        P(consistent) by the chain.
    left_out : ndarray of float, shape (n_patterns, n_folds)
        The same by the chain fitted without each fold.
    transfer : Transfer

    Returns
    -------
    low, high : ndarray of float, shape (n_patterns,)
        sigmoid(log-odds of p -+ quantile * sqrt(spread^2 + jackknife variance of the log-odds)), rounded to six
        decimals; p lies between them.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.model.target._interval import Transfer, interval
    >>> low, high = interval(np.array([0.5]), np.array([[0.5, 0.5, 0.5]]), Transfer(0.9, {}, 1.0, 2.0))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.12], [0.88])
    """
    from scipy.special import expit, logit

    centre = logit(np.clip(p, P_MIN, 1 - P_MIN))
    others = logit(np.clip(left_out, P_MIN, 1 - P_MIN))
    n = others.shape[1]
    jackknife = (n - 1) / n * ((others - others.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    reach = transfer.quantile * np.sqrt(transfer.spread**2 + jackknife)
    low, high = expit(centre - reach), expit(centre + reach)
    return np.minimum(low.round(6), p), np.maximum(high.round(6), p)
