"""A hierarchical signal-detection model: each judge's leniency and discrimination, partly pooled over datasets."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from deep._checks import Floats, Votes
from deep._odds import expit
from deep.features import distinct_patterns, weigh
from deep.model.pool._rows import LabeledRows

N_NODES = 7
MAX_ITERATIONS = 20
TOLERANCE = 1e-3

WEAK = 2.0
"""Standard deviation of a judge's parameters around those of all judges before any pooling is learned."""

LEAST_SPREAD = 0.05

EVIDENCE = 200.0
"""An unlabeled dataset counts as so many rows at most: without labels, more rows make a wrong model surer."""

LEAST_DISCRIMINATION = 0.02


@dataclass(frozen=True, eq=False)
class LatentClass:
    """Judges' parameters and how much each dataset moves them.

    Parameters
    ----------
    mean : ndarray of shape (n_voters, 3)
        Leniency, discrimination and loading on the item's difficulty, each in log-odds.
    spread : ndarray of shape (3,)
        Standard deviation of a judge's parameter from dataset to dataset, beyond the noise of counting.

    Notes
    -----
    P(judge j votes 1 | y, u) = sigmoid(leniency_j + (y - 1/2) discrimination_j + loading_j u), with u standard
    normal for each item, which all judges share: votes depend on each other even given y. No vote says nothing.
    """

    mean: Floats
    spread: Floats

    def adapt(self, votes: Votes, weights: Floats) -> Floats:
        """Return log-odds at equal class weights of a new dataset's vote patterns.

        Expectation-maximisation over the unknown labels, pulled towards `mean` as `spread` says; the loadings
        stay.
        """
        given = _counts(votes)
        counted = weights * min(1.0, EVIDENCE / weights.sum())
        theta, prior = self.mean.copy(), 0.0
        for _ in range(MAX_ITERATIONS):
            joint = _log_joint(given, theta)
            log_prior = -np.logaddexp(0.0, np.array([prior, -prior]))
            posterior = joint + log_prior[None, :, None]
            posterior = np.exp(posterior - logsumexp(posterior, axis=(1, 2), keepdims=True))
            before = theta
            theta = _maximise(given, posterior * counted[:, None, None], theta, self.mean, self.spread)
            share = (counted[:, None] * posterior.sum(axis=2)).sum(axis=0)
            prior = float(np.log((share[1] + 2.0) / (share[0] + 2.0)))
            if np.abs(theta - before).max() < TOLERANCE:
                break
        likelihood = logsumexp(_log_joint(given, theta), axis=2)
        return np.asarray(likelihood[:, 1] - likelihood[:, 0])


@dataclass(frozen=True, eq=False)
class JudgeEstimate:
    """Judges' parameters on one labeled dataset alone.

    Parameters
    ----------
    theta : ndarray of shape (n_voters, 3)
    noise : float
        About the variance of counting of a leniency.
    """

    theta: Floats
    noise: float


def judge_estimates(train: LabeledRows) -> dict[int, JudgeEstimate]:
    """Return the judges' parameters on each dataset: the same whichever other datasets are left out."""
    start = _start(train)
    alone = {group: train.only(group) for group in train.present()}
    return {group: JudgeEstimate(_fit_labeled(rows, start), _noise(rows)) for group, rows in alone.items()}


def fit_latent_class(train: LabeledRows, estimates: Mapping[int, JudgeEstimate] | None = None) -> LatentClass:
    """Learn from labeled datasets how judges differ from dataset to dataset.

    Parameters
    ----------
    train : LabeledRows
    estimates : mapping of int to JudgeEstimate, optional
        By dataset, of all of `train` and maybe others; default: :func:`judge_estimates` of `train`.

    Returns
    -------
    LatentClass

    References
    ----------
    .. [1] S. Paun et al., "Comparing Bayesian models of annotation", TACL 6, 2018.
       https://doi.org/10.1162/tacl_a_00040
    """
    known = judge_estimates(train) if estimates is None else estimates
    present = [known[group] for group in train.present()]
    by_dataset = np.array([one.theta for one in present])
    mean = by_dataset.mean(axis=0)
    between = ((by_dataset - mean) ** 2).sum(axis=0) / max(len(by_dataset) - 1, 1)
    # What counting adds to the spread is taken off; discrimination is a difference of two rates, so four times as much.
    excess = between.mean(axis=0) - np.array([1.0, 4.0, 1.0]) * np.mean([one.noise for one in present])
    return LatentClass(mean, np.sqrt(np.maximum(excess, LEAST_SPREAD**2)))


def _start(train: LabeledRows) -> Floats:
    """Return where every judge starts: no leniency, and better than chance, so that labels keep their meaning."""
    return np.tile([0.0, 2.0, 1.0], (train.votes.shape[1], 1))


def _fit_labeled(rows: LabeledRows, start: Floats) -> Floats:
    """Return the judges' parameters on one labeled dataset, weakly pulled towards those of all judges."""
    patterns, where = distinct_patterns(rows.votes)
    given = _counts(patterns)
    known = weigh(2 * where + rows.labels, rows.weights, 2 * len(patterns)).reshape(-1, 2, 1)
    theta = start
    for _ in range(MAX_ITERATIONS):
        joint = _log_joint(given, theta)
        difficulty = np.exp(joint - logsumexp(joint, axis=2, keepdims=True))
        before = theta
        theta = _maximise(given, known * difficulty, theta, start, np.full(3, WEAK))
        if np.abs(theta - before).max() < 10 * TOLERANCE:
            break
    return theta


def _noise(rows: LabeledRows) -> float:
    """Return about the variance of counting of a leniency, from the sizes of the two classes."""
    sizes = np.array([rows.weights[rows.labels == c].sum() for c in (0, 1)])
    return float((1.0 / (0.2 * sizes)).sum() / 4.0)


def _counts(votes: Votes) -> Floats:
    """Return the indicators of votes 1, then of votes 0, shape (n_rows, 2 * n_voters)."""
    return np.hstack([votes == 1, votes == 0]).astype(np.float64)


def _nodes() -> tuple[Floats, Floats]:
    points, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    return points, weights / weights.sum()


def _design() -> Floats:
    """Return (1, y - 1/2, u) at each label and node, shape (2 * N_NODES, 3)."""
    points = _nodes()[0]
    return np.array([[1.0, y - 0.5, u] for y in (0, 1) for u in points])


def _log_joint(given: Floats, theta: Floats) -> Floats:
    """Return log P(votes, node | label), shape (n_rows, 2, N_NODES)."""
    z = theta @ _design().T
    table = np.vstack([-np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)])
    return np.asarray((given @ table).reshape(-1, 2, N_NODES) + np.log(_nodes()[1]))


def _maximise(given: Floats, posterior: Floats, theta: Floats, centre: Floats, spread: Floats) -> Floats:
    """Return each judge's parameters after one Newton step of its logistic regression on label and difficulty."""
    design = _design()
    n_voters = len(theta)
    expected = given.T @ posterior.reshape(len(given), -1)
    ones, zeros = expected[:n_voters], expected[n_voters:]
    p = expit(theta @ design.T)
    total = ones + zeros
    gradient = (ones - total * p) @ design - (theta - centre) / spread**2
    curvature = np.einsum("jc,ca,cb->jab", total * p * (1 - p), design, design) + np.diag(1.0 / spread**2)
    step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
    # Expectation-maximisation needs only a better theta, not the best: one bounded Newton step cannot overshoot far.
    found = theta + np.clip(step, -1.0, 1.0)
    # A judge of negative discrimination would swap the meaning of the two labels.
    found[:, 1] = np.maximum(found[:, 1], LEAST_DISCRIMINATION)
    return np.asarray(found)
