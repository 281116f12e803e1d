"""How far P(consistent) may be off on a dataset that the chain has never seen."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._odds import P_MIN, expit, logit
from deep.model.target._spread import LEVEL, MIN_ROWS, WIDEST, cell_log_odds, paule_mandel, student_quantile


@dataclass(frozen=True)
class Transfer:
    """The spread of errors on a dataset never seen, learned by leaving each training dataset out.

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
    The spread is that of :func:`paule_mandel`, over log-odds of cells as they would be if both classes of the
    dataset were equally frequent.
    """
    shifts, deviations = {}, []
    for column, name in enumerate(datasets):
        cell = counts[:, column]
        predicted = logit(left_out[:, column])
        shifts[name] = _shift(predicted, cell)
        deviations.append(_deviations(predicted, cell))
    return Transfer(LEVEL, shifts, paule_mandel(deviations), student_quantile(n_folds - 1))


def _shift(predicted: Floats, counts: npt.NDArray[np.int64]) -> float:
    """Return the shift of the log-odds at which their mean P is the share of label 1, at equal class weights."""
    weights = counts / np.maximum(counts.sum(axis=0), 1) / 2
    total = weights.sum(axis=1)

    from scipy.optimize import brentq

    def gap(shift: float) -> float:
        return float(weights[:, 1].sum() - total @ expit(predicted + shift))

    return float(brentq(gap, -WIDEST, WIDEST))


def _deviations(predicted: Floats, counts: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return observed minus predicted log-odds of cells, and the variance of counting."""
    kept = counts.sum(axis=1) >= MIN_ROWS
    totals = counts.sum(axis=0)
    observed, noise = cell_log_odds(counts[kept, 1], counts[kept, 0])
    return observed - np.log(totals[1] / totals[0]) - predicted[kept], noise


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
        decimals, within [1e-6, 1 - 1e-6]; p lies between them.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.model.target._interval import Transfer, interval
    >>> low, high = interval(np.array([0.5]), np.array([[0.5, 0.5, 0.5]]), Transfer(0.9, {}, 1.0, 2.0))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.12], [0.88])
    """
    centre, others = logit(p), logit(left_out)
    n = others.shape[1]
    jackknife = (n - 1) / n * ((others - others.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    reach = transfer.quantile * np.sqrt(transfer.spread**2 + jackknife)
    low, high = expit(centre - reach), expit(centre + reach)
    return np.minimum(low.round(6).clip(P_MIN), p), np.maximum(high.round(6).clip(None, 1 - P_MIN), p)
