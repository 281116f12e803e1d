"""Reliability without bins: the isotonic calibration curve and the band that a calibrated predictor stays in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from deep._checks import Floats, Weights
from deep._figures import BLUE, GRAY, LIGHT, new_figure
from deep.calibration._scores import check_counts, check_inside, check_whole, checked_scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class CorpDisplay:
    """The CORP reliability diagram [1]_ with its consistency band, made by :meth:`from_predictions`.

    The curve is the isotonic regression of labels on P (pool adjacent violators), which needs no choice of bins.
    The band holds, point by point, the given share of the curves that a perfectly calibrated predictor with the same
    P would show by chance.

    Parameters
    ----------
    p : ndarray of shape (n_scores,)
        Distinct P, ascending.
    count : ndarray of shape (n_scores,)
        Rows with that P.
    recalibrated : ndarray of shape (n_scores,)
        The curve.
    low, high : ndarray of shape (n_scores,)
        The band.
    miscalibration, discrimination, uncertainty : float
        Brier score = miscalibration - discrimination + uncertainty; each is 0 or more.

    References
    ----------
    .. [1] Dimitriadis, Gneiting and Jordan (2021), PNAS 118(8). https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> from deep.calibration import CorpDisplay
    >>> y_prob, y_true, counts = [0.2, 0.2, 0.9, 0.9], [0, 1, 0, 1], [30, 20, 15, 35]
    >>> display = CorpDisplay.from_predictions(y_true, y_prob, sample_weight=counts, n_resamples=500)
    >>> print(display.frame().round(1).to_string(index=False))
      p  count  recalibrated  low  high
    0.2   50.0           0.4  0.1   0.3
    0.9   50.0           0.7  0.8   1.0
    >>> round(display.miscalibration, 3), round(display.discrimination, 4), round(display.uncertainty, 4)
    (0.04, 0.0225, 0.2475)
    """

    p: Floats
    count: Floats
    recalibrated: Floats
    low: Floats
    high: Floats
    miscalibration: float
    discrimination: float
    uncertainty: float

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: Weights = None,
        level: float = 0.9,
        n_resamples: int = 1000,
        random_state: int = 0,
    ) -> Self:
        """Fit the curve and draw the band.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in :func:`expected_calibration_error`; the weights are counts, and so whole numbers.
        level : float in (0, 1), default=0.9
            Of the band.
        n_resamples : int, default=1000
        random_state : int, default=0

        Raises
        ------
        InputError
            A value is out of range, or a weight is no whole number.
        """
        check_inside(level, "level")
        check_whole(n_resamples, least=1, name="n_resamples")
        scores = checked_scores(y_true, y_prob, sample_weight)
        n = check_counts(scores.n).astype(np.int64)
        curve = _isotonic(scores.n1 / scores.n, scores.n)
        rng = np.random.default_rng(random_state)
        # Labels drawn from P itself, so that the band is what pool-adjacent-violators makes of chance alone.
        drawn = rng.binomial(n, scores.p, size=(n_resamples, len(n))) / n
        band = np.array([_isotonic(row, scores.n) for row in drawn])
        low, high = np.quantile(band, [(1 - level) / 2, (1 + level) / 2], axis=0)
        base = scores.n1.sum() / scores.n.sum()
        # Brier scores of P, of the curve and of the overall share: MCB = brier - best, DSC = plain - best, UNC = plain.
        brier, best, plain = (_brier(q, scores.n, scores.n1) for q in (scores.p, curve, np.full_like(curve, base)))
        return cls(scores.p, scores.n, curve, low, high, max(brier - best, 0.0), max(plain - best, 0.0), plain)

    def frame(self) -> "pd.DataFrame":
        """Return the curve and the band, a row a distinct P."""
        import pandas as pd

        columns = ("p", "count", "recalibrated", "low", "high")
        return pd.DataFrame({name: getattr(self, name) for name in columns})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the curve over its band; returns the axes, new ones that belong to no pyplot state by default."""
        axes = new_figure(4.5, 4.5).subplots() if ax is None else ax
        axes.fill_between(self.p, self.low, self.high, color=LIGHT[GRAY], label="calibrated, by chance")
        axes.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8)
        axes.plot(self.p, self.recalibrated, color=BLUE, marker=".", label="observed, isotonic")
        axes.set(xlabel="P(consistent)", ylabel="share consistent", xlim=(0, 1), ylim=(0, 1))
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        return axes


def _isotonic(share: Floats, n: Floats) -> Floats:
    from sklearn.isotonic import isotonic_regression

    return np.asarray(isotonic_regression(share, sample_weight=n), dtype=np.float64)


def _brier(p: Floats, n: Floats, n1: Floats) -> float:
    return float((n1 * (1 - p) ** 2 + (n - n1) * p**2).sum() / n.sum())
