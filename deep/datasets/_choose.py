"""Some datasets of a vote matrix."""

from collections.abc import Sequence

import numpy as np

from deep.datasets._registry import resolve_dataset
from deep.exceptions import InputError
from deep.records import VoteMatrix


def choose_datasets(votes: VoteMatrix, *, only: Sequence[str] = (), exclude: Sequence[str] = ()) -> VoteMatrix:
    """Return the rows of some datasets.

    Parameters
    ----------
    votes : VoteMatrix
    only, exclude : sequence of str
        Names as :func:`deep.datasets.resolve_dataset` takes them; by default all, and none.

    Raises
    ------
    InputError
        A name is unknown, or no dataset is left.

    Examples
    --------
    >>> from deep.datasets import choose_datasets, simulate_votes
    >>> choose_datasets(simulate_votes(0), only=["xsum"]).dataset_names
    ('aggrefact-xsum',)
    """
    names = votes.dataset_names
    kept = {resolve_dataset(name, names, param="only") for name in only} or set(names)
    kept -= {resolve_dataset(name, names, param="exclude") for name in exclude}
    if not kept:
        raise InputError(f"`exclude` must leave a dataset to learn from. Got all of {', '.join(names)}.")
    if kept == set(names):
        return votes
    return votes.rows(np.isin(votes.datasets.astype(str), sorted(kept)))
