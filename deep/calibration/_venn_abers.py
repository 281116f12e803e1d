"""Inductive Venn-Abers prediction: an interval [p0, p1] for each score, valid where labels are exchangeable."""

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Labels, check_probabilities
from deep.base import BaseCalibrator
from deep.calibration._scores import collapse


class VennAbers(BaseCalibrator):
    """Inductive Venn-Abers predictor [1]_.

    For every score two isotonic regressions are fitted, one with the new item labeled 0 and one with it labeled 1;
    they give p0 <= p1. Where the labeled items and the new one are exchangeable, one of the two is perfectly
    calibrated, so that their distance says how much the labels leave open. On another dataset nothing is promised: it
    is meant for labels of the target itself.

    Attributes
    ----------
    scores_ : DistinctScores
        Distinct scores of the fit with their weights.

    References
    ----------
    .. [1] Vovk, Petej and Fedorova (2015). https://arxiv.org/abs/1511.00213

    Examples
    --------
    >>> from deep.calibration import VennAbers
    >>> venn = VennAbers().fit([0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], sample_weight=[20, 20, 20, 20])
    >>> venn.interval([0.2, 0.9]).round(3).tolist()
    [[0.0, 0.048], [0.976, 1.0]]
    >>> venn.transform([0.2, 0.9]).round(3).tolist()
    [0.045, 0.976]
    """

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        self.scores_ = collapse(p, y, w)

    def interval(self, y_prob: npt.ArrayLike) -> Floats:
        """Return [p0, p1] of each score, shape (n_examples, 2)."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "is_fitted_")
        distinct, where = np.unique(check_probabilities(y_prob), return_inverse=True)
        bounds = np.array([[self._with_label(score, label) for label in (0, 1)] for score in distinct])
        pairs: Floats = bounds[where]
        return pairs

    def _with_label(self, score: float, label: int) -> float:
        """Return the isotonic fit at a score, with one more item there that has this label."""
        from sklearn.isotonic import isotonic_regression

        known = self.scores_
        at = int(np.searchsorted(known.p, score))
        n, n1 = known.n, known.n1
        if at < len(known.p) and known.p[at] == score:
            n, n1 = n.copy(), n1.copy()
            n[at] += 1
            n1[at] += label
        else:
            n, n1 = np.insert(n, at, 1.0), np.insert(n1, at, float(label))
        return float(isotonic_regression(n1 / n, sample_weight=n)[at])

    def _transform(self, p: Floats) -> Floats:
        p0, p1 = self.interval(p).T
        # The minimax choice: least log loss beyond that of the better of the two bounds (Vovk et al., section 4).
        merged: Floats = p1 / (1.0 - p0 + p1)
        return merged
