"""The votes of ensembles that learn from no label, on a table of votes."""

from collections.abc import Sequence

import numpy as np

from deep._checks import Votes, check_choice
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.records import ABSTAIN, VoteMatrix

LABEL_FREE = tuple(name for name, ensembler in ENSEMBLERS.items() if not ensembler.uses_labels)
"""The ensemblers that can be fitted to the votes that they are to judge."""


def ensemble_votes(votes: VoteMatrix, names: Sequence[str]) -> VoteMatrix:
    """Return the decisions of ensembles of all voters, each fitted to each dataset's votes without their labels.

    Parameters
    ----------
    votes : VoteMatrix
        Of at least two voters. Those without a vote on a dataset are left out there.
    names : sequence of str
        Of `LABEL_FREE`.

    Returns
    -------
    VoteMatrix
        A voter an ensembler, ``<name> of <number of voters>``; no vote where its P(consistent) is 0.5.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> from deep.evaluate import ensemble_votes
    >>> votes = VoteMatrix([[1, 1, 0], [0, -1, 0], [1, 0, -1]], "abc", ["x", "y", "z"], ["d"] * 3, [-1] * 3)
    >>> made = ensemble_votes(votes, ["MajorityLabelVoter"])
    >>> made.voter_names, made.votes.ravel().tolist()
    (('MajorityLabelVoter of 3',), [1, 0, -1])
    """
    chosen = [check_choice(name, LABEL_FREE, "ensembler") for name in names]
    k = len(votes.voter_names)
    if k < 2:
        raise InputError(f"`votes` must have at least two voters for `ensembler`. Got {k}.")
    decided: Votes = np.full((len(votes.votes), len(chosen)), ABSTAIN, dtype=np.int8)
    for name in votes.dataset_names:
        rows = np.flatnonzero((votes.datasets == name) & (votes.votes != ABSTAIN).any(axis=1))
        for column, ensembler in enumerate(chosen if len(rows) else ()):
            decided[rows, column] = _decide(ensembler, votes.votes[rows])
    return VoteMatrix(
        votes=decided,
        example_ids=votes.example_ids,
        voter_names=[f"{name} of {k}" for name in chosen],
        datasets=votes.datasets,
        labels=votes.labels,
        document_ids=votes.document_ids,
    )


def _decide(ensembler: str, votes: Votes) -> Votes:
    cast = votes[:, (votes != ABSTAIN).any(axis=0)]
    p = ENSEMBLERS[ensembler]().fit(cast).predict_proba(cast)[:, 1]
    return np.where(np.abs(p - 0.5) < 1e-12, ABSTAIN, p > 0.5).astype(np.int8)
