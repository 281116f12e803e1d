"""The votes that a model's P(consistent) makes on a table of votes."""

import numpy as np

from deep._checks import Votes
from deep._odds import expit
from deep.model import Model
from deep.records import ABSTAIN, VoteMatrix

DECISIONS = ("P at 0.5", "P at prior")
"""The two rules by which a P(consistent) becomes a vote: for accuracy, and for balanced accuracy."""


def model_votes(model: Model, votes: VoteMatrix, *, allow_missing: bool = False) -> VoteMatrix:
    """Return the decisions of a model as two voters, one for each of `DECISIONS`.

    Each dataset is scored by itself, at its estimated prior. An item on which every voter of the model is without a
    vote gets none.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
        Its columns are matched by name.
    allow_missing : bool, default=False
        Let a voter without a column count as no vote.

    Raises
    ------
    InputError
        A voter of the model is missing or of another version.
    """
    selected = model.select(votes, allow_missing=allow_missing)
    decided: Votes = np.full((len(selected), len(DECISIONS)), ABSTAIN, dtype=np.int8)
    for name in votes.dataset_names:
        rows = np.flatnonzero((votes.datasets == name) & (selected != ABSTAIN).any(axis=1))
        if len(rows):
            p = model.score(votes.rows(rows), allow_missing=allow_missing)
            decided[rows] = np.column_stack([p >= at for at in (0.5, _prior(model, votes.rows(rows), allow_missing))])
    return VoteMatrix(
        votes=decided,
        example_ids=votes.example_ids,
        voter_names=DECISIONS,
        datasets=votes.datasets,
        labels=votes.labels,
        document_ids=votes.document_ids,
    )


def _prior(model: Model, votes: VoteMatrix, allow_missing: bool) -> float:
    """Return the P(consistent) from which on a dataset's items are called consistent for balanced accuracy."""
    if model.correction is not None:
        return float(expit(model.decision_log_odds))
    return model.estimate_prior(votes, allow_missing=allow_missing).estimate
