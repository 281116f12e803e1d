"""Small vote matrices and models for tests."""

import numpy as np

from deep._util.odds import logit
from deep._util.scales import Scale
from deep.model import AnswerMap, pattern_grid
from deep.records import VoteMatrix

LEANINGS = (0.85, 0.75, 0.8, 0.7, 0.9, 0.65)


def small_votes(datasets=("a", "b", "c", "d"), n_voters=3, n=120, seed=0, prefix="judge"):
    """Return votes of judges that are right more often than not, a tenth of them missing."""
    rng = np.random.default_rng(seed)
    names = np.repeat(list(datasets), n)
    labels = rng.integers(0, 2, len(names))
    right = rng.random((len(names), n_voters)) < np.resize(LEANINGS, n_voters)
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    votes[rng.random(votes.shape) < 0.1] = -1
    ids = [f"i{i}" for i in range(len(names))]
    return VoteMatrix(votes, ids, [f"{prefix}-{j}" for j in range(n_voters)], names, labels)


QUICK = {"sizes": [3], "ensembler": "LogisticRegression", "calibrator": "platt"}
"""A chain that is fitted in a moment."""


def table_of(model):
    """Return P(consistent) of every pattern of votes at equal class weights."""
    return model.scores_of(pattern_grid(len(model.voters)), streamed=True).p_uniform


def identity(n_judges):
    """Return the map of answers that are evidence already."""
    ends = np.array([0.0, 1.0])
    return AnswerMap(
        (Scale(0.0, 1.0),) * n_judges,
        [(ends, ends)] * n_judges,
        (False,) * n_judges,
        np.zeros(n_judges),
        np.ones(n_judges),
    )


def interval_of(few, p, counts=None):
    """Return the bounds of P that labels have corrected, as a correction of a model has them."""
    z = logit(np.asarray(p, dtype=float))
    return few.misfit.bounds(z, few.coef_[0] + few.coef_[1] * z, few.covariance_, counts)
