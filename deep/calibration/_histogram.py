"""Histogram binning."""

import numpy as np

from deep._checks import Floats, Labels
from deep.base import BaseCalibrator
from deep.calibration._scores import bin_edges, bin_sums, check_bins, collapse


class Histogram(BaseCalibrator):
    """Replace P by the share of label 1 among the fitted rows in its bin, of equal width.

    Parameters
    ----------
    n_bins : int, default=10
        Equal-width bins over [0, 1]; each holds its left edge, the last one both.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins + 1,)
    values_ : ndarray of shape (n_bins,)
        The calibrated probability of each bin. A bin without fitted rows has its own middle.

    Notes
    -----
    **Not monotone**: a bin may lie below its left neighbour. A bin of one class only is clipped to 1e-6 or
    1 - 1e-6, as every output. Only the ratio of weights matters. Flipping labels and probabilities together
    (y to 1 - y, P to 1 - P) flips the output, save for scores exactly on an inner edge, which the bin to
    their right holds.

    References
    ----------
    .. [1] B. Zadrozny and C. Elkan, "Obtaining calibrated probability estimates from decision trees and
       naive Bayesian classifiers", ICML 2001, 609-616.

    Examples
    --------
    >>> from deep.calibration import Histogram
    >>> histogram = Histogram(n_bins=2).fit([0.1, 0.2, 0.3, 0.4, 0.8, 0.9], [0, 0, 0, 1, 1, 0])
    >>> histogram.transform([0.0, 0.49, 0.5, 1.0])
    array([0.25, 0.25, 0.5 , 0.5 ])
    """

    edges_: Floats
    values_: Floats

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        edges = bin_edges(check_bins(self.n_bins))
        n, _, n1 = bin_sums(collapse(p, y, w), edges)
        middles = (edges[:-1] + edges[1:]) / 2.0
        self.edges_, self.values_ = edges, np.divide(n1, n, out=middles, where=n > 0)

    def _transform(self, p: Floats) -> Floats:
        return self.values_[np.searchsorted(self.edges_[1:-1], p, side="right")]
