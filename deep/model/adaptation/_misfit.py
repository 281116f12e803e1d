"""How far log-odds may be off on a dataset without labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, weigh
from deep._odds import P_MIN, expit, logit
from deep.model.adaptation._align import newton_logistic
from deep.model.adaptation._spread import MIN_ROWS, cell_log_odds, paule_mandel, student_quantile

NO_CORRECTION = (0.0, 1.0)
"""Intercept and slope that leave log-odds as they are."""

START = ((0.5, 0.0), (0.0, 0.15))
"""Covariance of intercept and slope assumed before any dataset was seen, worth one dataset."""

START_DATASETS = 3
"""No correction counts as so many datasets, in the mean and in the degrees of freedom of intervals."""

MAX_LOG_ODDS = 30.0
"""A rate nearer to 0 or 1 has no variance of counting that a float can hold."""


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """One dataset's rows with log-odds of P by fits without it.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_examples,)
    ones, zeros : ndarray of float, shape (n_examples,)
        Weight of label 1 and of label 0.
    cell : ndarray of int, shape (n_examples,)
        Which vote pattern each row has.
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats
    cell: npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Misfit:
    """How log-odds z must be corrected on a new dataset, to intercept + slope * z, as training datasets tell.

    Parameters
    ----------
    mean : ndarray of shape (2,)
        Expected intercept and slope; (0, 1) is no correction.
    covariance : ndarray of shape (2, 2)
        Of intercept and slope between datasets.
    n_datasets : int
        How many it was learned from.
    cell_spread : float
        Standard deviation, in log-odds, of a vote pattern's rate around the corrected P, beyond counting.
    worst : ndarray of shape (2,), optional
        Intercept and slope of the training dataset on which P was furthest off.
    """

    mean: Floats
    covariance: Floats
    n_datasets: int
    cell_spread: float = 0.0
    worst: Floats | None = None

    @property
    def second_moment(self) -> Floats:
        """Return the mean squares and product of (intercept, slope - 1): how far off P is that nobody corrected."""
        bias = self.mean - NO_CORRECTION
        return np.asarray(self.covariance + np.outer(bias, bias))

    @property
    def quantile(self) -> float:
        """Return the quantile of Student's t by which intervals reach, in standard deviations."""
        return student_quantile(self.n_datasets + START_DATASETS)

    def interval(self, log_odds: Floats, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of P at each log-odds, at level 0.9, while no label has corrected it.

        Student's t with `n_datasets` + `START_DATASETS` degrees of freedom.

        Parameters
        ----------
        log_odds : ndarray of float, shape (n_examples,)
        counts : ndarray of float, shape (n_examples,), optional
            The bounds are those of the rate observed in so many rows; default: of the true rate.

        Examples
        --------
        >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[0.25, 0.0], [0.0, 0.01]]), 10)
        >>> low, high = misfit.interval(np.array([0.0, 2.0]))
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([0.29, 0.74], [0.71, 0.95])
        """
        return self.bounds(np.asarray(log_odds), np.asarray(log_odds), self.second_moment, counts)

    def bounds(
        self, log_odds: Floats, centre: Floats, covariance: Floats, counts: npt.ArrayLike | None
    ) -> tuple[Floats, Floats]:
        """Return the bounds around `centre` where intercept and slope on `log_odds` have this covariance."""
        variance = covariance[0, 0] + 2 * covariance[0, 1] * log_odds + covariance[1, 1] * log_odds**2
        variance = variance + self.cell_spread**2
        half, least = np.zeros(()), P_MIN
        if counts is not None:
            held = np.clip(centre, -MAX_LOG_ODDS, MAX_LOG_ODDS)
            variance = variance + 1.0 / (np.asarray(counts) * expit(held) * expit(-held))
            # Continuity correction: an observed rate moves in steps of 1 / n, of which half goes to each side.
            half, least = 0.5 / np.asarray(counts), 0.0
        reach = np.sqrt(variance) * self.quantile
        return np.maximum(expit(centre - reach) - half, least), np.minimum(expit(centre + reach) + half, 1.0 - least)


def learn_misfit(left_out: list[LeftOutRows]) -> Misfit:
    """Learn the misfit from datasets left out.

    Parameters
    ----------
    left_out : list of LeftOutRows
        None, one, or more.

    Returns
    -------
    Misfit
        The mean of the datasets' own corrections is shrunk towards no correction, their covariance towards
        `START`; the cells' spread is that of :func:`paule_mandel`.

    Examples
    --------
    >>> learn_misfit([]).covariance.tolist()
    [[0.5, 0.0], [0.0, 0.15]]
    """
    n = len(left_out)
    corrections = np.array([_correction(one) for one in left_out]).reshape(n, 2)
    mean = (corrections.sum(axis=0) + START_DATASETS * np.array(NO_CORRECTION)) / (n + START_DATASETS)
    apart = corrections - mean
    covariance = (np.array(START) + apart.T @ apart) / max(n, 1)
    spread = paule_mandel([_deviations(one, own) for one, own in zip(left_out, corrections, strict=True)])
    if not n:
        return Misfit(mean, covariance, n, spread)
    off = [_mean_error(one, own) for one, own in zip(left_out, corrections, strict=True)]
    return Misfit(mean, covariance, n, spread, corrections[int(np.argmax(off))])


def _mean_error(one: LeftOutRows, correction: Floats) -> float:
    """Return how far P is from corrected P, the mean over rows."""
    gaps = np.abs(expit(correction[0] + correction[1] * one.log_odds) - expit(one.log_odds))
    return float(np.average(gaps, weights=one.ones + one.zeros))


def _correction(one: LeftOutRows) -> Floats:
    """Return intercept and slope that a whole labeled dataset asks for."""
    design = np.column_stack([np.ones(len(one.log_odds)), one.log_odds])
    # About one row's worth of pull keeps a separable dataset finite.
    penalty = np.eye(2) / (one.ones.sum() + one.zeros.sum())
    return newton_logistic(design, one.ones, one.zeros, centre=np.array(NO_CORRECTION), penalty=penalty)


def _deviations(one: LeftOutRows, correction: Floats) -> tuple[Floats, Floats]:
    """Return observed minus corrected log-odds of the cells with rows enough, and the variance of counting."""
    ones, zeros = (weigh(one.cell, weights) for weights in (one.ones, one.zeros))
    n = ones + zeros
    corrected = correction[0] + correction[1] * one.log_odds
    # Rows of a cell may have unlike scores: the rate that is expected of it is the mean over its rows.
    expected = weigh(one.cell, (one.ones + one.zeros) * expit(corrected)) / np.maximum(n, 1e-9)
    kept = n >= MIN_ROWS
    observed, noise = cell_log_odds(ones[kept], zeros[kept])
    return observed - logit(expected[kept]), noise
