"""Reliability diagrams: the share of consistent items beside the P that was given to them."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from deep._checks import Floats, Weights
from deep._figures import BLUE, GRAY, new_figure, plain_grid
from deep.calibration._names import DEFAULT_BINS
from deep.calibration._scores import DistinctScores, bin_edges, bin_sums, check_bins, checked_scores

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Z_95 = NormalDist().inv_cdf(0.975)
"""Quantile of the normal distribution for a 95 % interval."""


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """Observed against predicted share of consistent items, by bin of P, with what chance allows.

    Made by :meth:`from_predictions`.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bins of equal width.
    count : ndarray of shape (n_bins,)
        Weight of the rows in each bin.
    mean_prob : ndarray of shape (n_bins,)
        Their mean P; nan in an empty bin.
    share : ndarray of shape (n_bins,)
        Share of them with label 1; nan in an empty bin.
    low, high : ndarray of shape (n_bins,)
        95 % interval of that share by Wilson's method [1]_; nan in an empty bin.
    name : str, optional
        What the probabilities are called in a legend.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
       https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> from deep.calibration import ReliabilityDisplay
    >>> y_prob, y_true, counts = [0.2, 0.2, 0.9, 0.9], [0, 1, 0, 1], [30, 20, 15, 35]
    >>> display = ReliabilityDisplay.from_predictions(y_true, y_prob, n_bins=2, sample_weight=counts)
    >>> print(display.frame().round(2).to_string(index=False))
     bin_low  bin_high  count  mean_prob  share_consistent  ci_low  ci_high
         0.0       0.5   50.0        0.2               0.4    0.28     0.54
         0.5       1.0   50.0        0.9               0.7    0.56     0.81
    """

    edges: Floats
    count: Floats
    mean_prob: Floats
    share: Floats
    low: Floats
    high: Floats
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = DEFAULT_BINS,
        sample_weight: Weights = None,
        name: str | None = None,
    ) -> Self:
        """Bin probabilities and their labels.

        Parameters
        ----------
        y_true, y_prob, n_bins, sample_weight
            As in :func:`expected_calibration_error`.
        name : str, optional
            For the legend.

        Raises
        ------
        InputError
            A value is out of range, or lengths differ.
        """
        return cls._from_scores(checked_scores(y_true, y_prob, sample_weight), bin_edges(check_bins(n_bins)), name)

    @classmethod
    def _from_scores(cls, scores: DistinctScores, edges: Floats, name: str | None = None) -> Self:
        """Bin collapsed scores between `edges`."""
        n, expected, n1 = bin_sums(scores, edges)
        mean_prob, share = (np.divide(part, n, out=np.full_like(n, np.nan), where=n > 0) for part in (expected, n1))
        return cls(edges, n, mean_prob, share, *wilson_interval(share, n), name)

    def frame(self) -> "pd.DataFrame":
        """Return the table behind the diagram, a row a bin."""
        import pandas as pd

        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "mean_prob": self.mean_prob,
                "share_consistent": self.share,
                "ci_low": self.low,
                "ci_high": self.high,
            }
        )

    def plot(self, ax: "Axes | None" = None, *, color: str = BLUE, shift: float = 0.0) -> "Axes":
        """Draw the bins with their intervals, beside the diagonal of perfect calibration.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: the axes of a new figure (``.plot().figure``), without pyplot.
        color : str
            Of points and intervals.
        shift : float, default=0.0
            Moves the points sideways, in units of P, so that two displays in one axes do not overlap.

        Returns
        -------
        matplotlib Axes
        """
        axes = new_figure(4.5, 4.5, constrained=True).subplots() if ax is None else ax
        ends = self.edges[0], self.edges[-1]
        axes.plot(ends, ends, color=GRAY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        held = self.count > 0
        x, y = self.mean_prob[held] + shift, self.share[held]
        bars = np.clip([y - self.low[held], self.high[held] - y], 0.0, None)
        axes.errorbar(x, y, yerr=bars, fmt="none", color=color, alpha=0.45, linewidth=3, zorder=2)
        (line,) = axes.plot(x, y, "o-", color=color, markersize=5, linewidth=1.2, label=self.name, zorder=3)
        # A point at 0 or 1 is shown whole; an empty line that is not clipped would upset layout engines.
        line.set_clip_on(not held.any())
        axes.set(xlim=ends, ylim=(0, 1), xlabel="mean P(consistent)", ylabel="share consistent")
        plain_grid(axes)
        return axes


def wilson_interval(share: Floats, n: Floats, z: float = Z_95) -> tuple[Floats, Floats]:
    """Return Wilson's interval of a share of n rows; nan where there are no rows.

    Parameters
    ----------
    share, n : ndarray of float, of one shape
        `n` may be an effective number.
    z : float
        The quantile that both ends are away; by default that of 95 %.

    Examples
    --------
    >>> import numpy as np
    >>> from deep.calibration import wilson_interval
    >>> [round(float(end), 3) for end in wilson_interval(np.array(0.5), np.array(20.0))]
    [0.299, 0.701]
    """
    held = np.where(n > 0, n, np.nan)
    centre = share + z**2 / (2.0 * held)
    half = z * np.sqrt(share * (1.0 - share) / held + (z / (2.0 * held)) ** 2)
    scale = 1.0 + z**2 / held
    return np.clip((centre - half) / scale, 0.0, 1.0), np.clip((centre + half) / scale, 0.0, 1.0)
