"""One model of every kind that a file can hold."""

from functools import cache

import numpy as np

from deep.model import Model, fit
from deep.records import VoteMatrix
from tests.model.fitted import QUICK, small_votes


def with_labels(votes, kept):
    """Return votes of which some rows alone have a label."""
    labels = np.where(kept, votes.labels, -1)
    return VoteMatrix(votes.votes, votes.item_ids, votes.voter_names, votes.datasets, labels)


def soft_scores(votes, n_scorers=2):
    """Return soft scores that lean to the label, one in a unit of its own, a few missing."""
    rng = np.random.default_rng(len(votes.labels))
    result = votes.labels[:, None] + rng.normal(0, 1, (len(votes.labels), n_scorers))
    result[:, 0] = 1 / (1 + np.exp(-result[:, 0]))
    result[rng.random(result.shape) < 0.05] = np.nan
    return result


def _unlabeled():
    votes = small_votes(("a",))
    return fit(with_labels(votes, np.zeros(120, dtype=bool)))


def _own_labels():
    votes = small_votes(("a",))
    return fit(with_labels(votes, np.arange(120) < 50))


def _with_scores():
    votes = small_votes()
    return fit(votes, scores=soft_scores(votes), score_names=["odds", "margin"])


def _adapted(kept):
    votes = small_votes(("a", "b", "c"))
    return fit(with_labels(votes, (votes.datasets != "c") | kept), target="c")


MAKERS = {
    "adapted with labels": lambda: _adapted(np.arange(360) % 120 < 20),
    "adapted without labels": lambda: _adapted(np.zeros(360, dtype=bool)),
    "average of one": lambda: fit(small_votes(("a",)), ensembler="Average"),
    "average of two": lambda: fit(small_votes(("a", "b"))),
    "average of four": lambda: fit(small_votes(), ensembler="Average"),
    "chain": lambda: fit(small_votes(), **QUICK),
    "chain of more voters than a table has": lambda: fit(small_votes(n_voters=11), **{**QUICK, "sizes": [11]}),
    "chain of one dataset": lambda: fit(small_votes(("a",)), **QUICK),
    "chain of the paper's recipe": lambda: fit(small_votes(), recipe="paper", sizes=[3], ensembler="BernoulliNB"),
    "own labels": _own_labels,
    "stack": lambda: fit(small_votes(), ensembler="Stack"),
    "stack of more voters than a table has": lambda: fit(small_votes(n_voters=11), ensembler="Stack"),
    "stack with scores": _with_scores,
    "votes": _unlabeled,
}


@cache
def model_of(kind: str) -> Model:
    """Return the model of one kind."""
    return MAKERS[kind]()


def new_rows(model, seed=5, datasets=("new", "newer")):
    """Return votes of two datasets, and soft scores where the model was fitted with some."""
    votes = small_votes(datasets, n_voters=len(model.voters) - len(model.score_names), n=40, seed=seed)
    return votes, soft_scores(votes) if model.score_names else None
