"""An exponential tilt of the source table: one score, its two class distributions, bent to fit a new dataset."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

from deep._checks import Floats
from deep.features import weigh
from deep.model.pool._rows import LabeledRows

N_BINS = 24
SMOOTHING = 0.02
"""Weight of the two classes' mean in each class's distribution: no bin is impossible under either."""

EVIDENCE = 100.0
"""A dataset counts as so many rows at most: the tilt is a rough model, and more rows only make it surer, not better."""

LEAST_SPREAD = 0.1


@dataclass(frozen=True, eq=False)
class Tilt:
    """Two class distributions over bins of a score, and how far training datasets bend them.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
    log_table : ndarray of shape (2, n_bins)
        Log probability of a bin given label 0 or 1, every training dataset weighing the same.
    centres : ndarray of shape (n_bins,)
        The score at each bin, standardised.
    spread : ndarray of shape (2,)
        Standard deviation over training datasets of the tilt of each class.
    """

    edges: Floats
    log_table: Floats
    centres: Floats
    spread: Floats

    def adapt(self, score: Floats, weights: Floats) -> Floats:
        """Return log-odds at equal class weights of a new dataset's rows.

        The tilts of the two classes and the prior maximise the likelihood of the rows' bins, with a Gaussian
        pull of the tilts towards 0 as wide as the training datasets spread, and of the prior towards a half.
        """
        where = np.searchsorted(self.edges, score, side="right")
        share = weigh(where, weights, len(self.centres)) / weights.sum()
        n = min(EVIDENCE, weights.sum())

        def objective(theta: Floats) -> float:
            bent = self._bent(theta[:2])
            prior = -np.logaddexp(0.0, np.array([theta[2], -theta[2]]))
            likelihood = share @ logsumexp(bent + prior[:, None], axis=0)
            return float(-n * likelihood + 0.5 * np.sum((theta[:2] / self.spread) ** 2) + 0.5 * (theta[2] / 1.5) ** 2)

        found = minimize(objective, np.zeros(3), method="BFGS").x
        bent = self._bent(found[:2])
        return np.asarray((bent[1] - bent[0])[where])

    def _bent(self, tilts: Floats) -> Floats:
        raw = self.log_table + tilts[:, None] * self.centres
        return np.asarray(raw - logsumexp(raw, axis=1, keepdims=True))


def fit_tilt(score: Floats, train: LabeledRows) -> Tilt:
    """Learn the table of a score over training datasets, and how much each of them bends it.

    Parameters
    ----------
    score : ndarray of float, shape (n_examples,)
        One score a training row.
    train : LabeledRows

    Returns
    -------
    Tilt

    References
    ----------
    .. [1] S. Maity, M. Yurochkin, M. Banerjee and Y. Sun, "Understanding new tasks through the lens of training
       data via exponential tilting", ICLR 2023. https://arxiv.org/abs/2205.13577
    """
    weights = train.balanced()
    order = np.argsort(score, kind="stable")
    cumulated = np.cumsum(weights[order]) / weights.sum()
    edges = np.unique(score[order][np.searchsorted(cumulated, np.arange(1, N_BINS) / N_BINS)])
    where = np.searchsorted(edges, score, side="right")
    n_bins = len(edges) + 1
    whole = weigh(where, weights, n_bins)
    centres = weigh(where, weights * score, n_bins) / np.where(whole > 0, whole, 1.0)
    mean = np.average(score, weights=weights)
    centres = (centres - mean) / (np.sqrt(np.average((score - mean) ** 2, weights=weights)) or 1.0)
    tables = _tables(where, train, n_bins)
    table = tables.mean(axis=0)
    table = (1 - SMOOTHING) * table + SMOOTHING * table.mean(axis=0)
    log_table = np.log(np.maximum(table, 1e-12))
    tilts = np.array([[_tilt_of(one[c], log_table[c], centres) for c in (0, 1)] for one in tables])
    return Tilt(edges, log_table, centres, np.maximum(np.sqrt((tilts**2).mean(axis=0)), LEAST_SPREAD))


def _tables(where: npt.NDArray[np.intp], train: LabeledRows, n_bins: int) -> Floats:
    """Return by dataset and class the share of weight in each bin, shape (n_datasets, 2, n_bins)."""
    found = []
    for group in train.present():
        for label in (0, 1):
            kept = (train.groups == group) & (train.labels == label)
            count = weigh(where[kept], train.weights[kept], n_bins)
            found.append(count / count.sum())
    return np.array(found).reshape(-1, 2, n_bins)


def _tilt_of(share: Floats, log_table: Floats, centres: Floats) -> float:
    """Return the tilt under which the table's mean score is the dataset's."""
    wanted = float(share @ centres)
    tilt = 0.0
    for _ in range(50):
        p = np.exp(log_table + tilt * centres)
        p /= p.sum()
        mean = float(p @ centres)
        variance = max(float(p @ (centres - mean) ** 2), 1e-3)
        step = float(np.clip((wanted - mean) / variance, -1.0, 1.0))
        tilt = float(np.clip(tilt + step, -5.0, 5.0))
        if abs(step) < 1e-8:
            break
    return tilt
