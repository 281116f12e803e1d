"""One dataset that a model is used on: its votes, its soft scores, and labels of some of its items."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deep._checks import Floats
from deep.datasets import join_labels, read_labels, read_votes
from deep.exceptions import InputError
from deep.model import Model, other_columns, scores_for
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Target:
    """A dataset that a model is used on.

    Parameters
    ----------
    votes : VoteMatrix
        Of one dataset; -1 where no label is to be used.
    scores : ndarray of float, shape (n_examples, n_scorers), optional
        Where the model was fitted on some.
    """

    votes: VoteMatrix
    scores: Floats | None = None

    @property
    def name(self) -> str:
        """Return the name of the dataset."""
        return self.votes.dataset_names[0]

    @property
    def n_labels(self) -> int:
        """Return the number of items with a label."""
        return int((self.votes.labels >= 0).sum())

    def labels(self) -> VoteMatrix:
        """Return the rows that have a label."""
        return self.votes.rows(self.votes.labels >= 0)


def votes_for(model: Model, paths: Sequence[str], *, one_dataset: bool = False) -> VoteMatrix:
    """Read votes for a model; columns that cannot stand for one of its voters are left out.

    Raises
    ------
    InputError
        As :func:`deep.datasets.read_votes`, or there are several datasets where one is wanted.
    """
    votes = read_votes(paths, ignore=other_columns(model, paths))
    if one_dataset and len(votes.dataset_names) > 1:
        raise InputError(f"`votes` must be of one dataset. Got {', '.join(votes.dataset_names)}.")
    return votes


def read_target(model: Model, votes: Sequence[str], labels: Sequence[str] = (), scores: Sequence[str] = ()) -> Target:
    """Read one dataset that a model is used on.

    Parameters
    ----------
    model : Model
    votes : sequence of str
        Tables of votes; of several datasets the one that the labels are of.
    labels : sequence of str, optional
        Tables of labels. Labels beside the votes are not used.
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted on some.

    Raises
    ------
    InputError
        A table cannot be used, or there is more than one dataset, or more than one with labels.
    """
    (found,) = read_targets(model, votes, labels, scores, one_dataset=True)
    return found


def read_targets(
    model: Model,
    votes: Sequence[str],
    labels: Sequence[str] = (),
    scores: Sequence[str] = (),
    *,
    one_dataset: bool = False,
) -> list[Target]:
    """Read the datasets that a model is used on; with labels the one that they are of, as in :func:`read_target`."""
    every = votes_for(model, votes, one_dataset=one_dataset and not labels)
    soft = scores_for(model, every, scores)
    if labels:
        table = read_labels(labels)
        every = join_labels(every, table)
        names = sorted(set(every.datasets[np.isin(every.datasets.astype(str), list(set(table.datasets)))]))
        if len(names) > 1:
            raise InputError(f"`labels` must be of one dataset. Got {', '.join(names)}.")
    else:
        names, every = list(every.dataset_names), replace(every, labels=np.full(len(every.labels), -1))
    return [_target(every, soft, name) for name in names]


def _target(votes: VoteMatrix, scores: Floats | None, name: str) -> Target:
    rows = votes.datasets == name
    return Target(votes.rows(rows), None if scores is None else scores[rows])
