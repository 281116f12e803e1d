"""How far log-odds are off from dataset to dataset: what a model file holds of it."""

from dataclasses import dataclass

import numpy as np

from deep._checks import Floats

__all__ = ["LEVEL", "Misfit", "PriorEstimate"]

LEVEL = 0.9
"""Nominal coverage of every interval of the pool."""


@dataclass(frozen=True, eq=False)
class Misfit:
    """How log-odds z must be corrected on a new dataset, to intercept + slope * z, as training datasets tell.

    Parameters
    ----------
    second_moment : ndarray of shape (2, 2)
        Mean over training datasets of the outer product of (intercept, slope - 1).
    n_datasets : int
        How many it was learned from.
    cell_spread : float
        Standard deviation, in log-odds, of a vote pattern's rate around the corrected P, beyond counting.
    """

    second_moment: Floats
    n_datasets: int
    cell_spread: float = 0.0

    def interval(self, log_odds: Floats, counts: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of P at each log-odds, at level 0.9: Student's t with one degree a dataset.

        Parameters
        ----------
        log_odds : ndarray of float, shape (n_examples,)
        counts : ndarray of float, shape (n_examples,), optional
            The bounds are those of the rate observed in so many rows; default: of the true rate.

        Examples
        --------
        >>> misfit = Misfit(np.array([[0.25, 0.0], [0.0, 0.01]]), 10)
        >>> low, high = misfit.interval(np.array([0.0, 2.0]))
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([0.29, 0.74], [0.71, 0.95])
        """
        return self.bounds(np.asarray(log_odds), np.asarray(log_odds), self.second_moment, counts)

    def bounds(
        self, log_odds: Floats, centre: Floats, covariance: Floats, counts: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return the bounds around `centre` where intercept and slope on `log_odds` have this covariance."""
        from scipy.special import expit
        from scipy.stats import t as student

        variance = covariance[0, 0] + 2 * covariance[0, 1] * log_odds + covariance[1, 1] * log_odds**2
        variance = variance + self.cell_spread**2
        half: Floats | float = 0.0
        if counts is not None:
            p = expit(centre)
            variance = variance + 1.0 / (np.asarray(counts) * p * (1 - p))
            # A rate moves in steps: half of one to each side, as ever when a smooth law stands for counts.
            half = 0.5 / np.asarray(counts)
        reach = np.sqrt(variance) * student.ppf((1 + LEVEL) / 2, max(self.n_datasets, 1))
        return np.maximum(expit(centre - reach) - half, 0.0), np.minimum(expit(centre + reach) + half, 1.0)


@dataclass(frozen=True)
class PriorEstimate:
    """What is believed of a dataset's share of consistent items.

    Parameters
    ----------
    estimate, low, high : float
        In [0, 1].
    refused : bool
        True where nothing could be learned from the dataset itself: the estimate is then the training
        datasets' mean, and the interval as wide as they lie apart.
    why : str or None
        The reason, in a sentence.
    """

    estimate: float
    low: float
    high: float
    refused: bool
    why: str | None
