"""How a model comes to its probability for one item."""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from deep.datasets import resolve_dataset
from deep.exceptions import InputError
from deep.model import Model
from deep.records import ABSTAIN, VoteMatrix


def item_row(votes: VoteMatrix, item: str, *, dataset: str | None = None) -> int:
    """Return the row of one item.

    Parameters
    ----------
    votes : VoteMatrix
    item : str
        An example id.
    dataset : str, optional
        Its dataset, where several have an item of that id.

    Raises
    ------
    InputError
        There is no such item, or more than one.
    """
    chosen = votes.example_ids == item
    if dataset is not None:
        chosen &= votes.datasets == resolve_dataset(dataset, votes.dataset_names, param="dataset")
    rows = np.flatnonzero(chosen)
    if len(rows) != 1:
        where = ", ".join(sorted(set(votes.datasets[rows]))) or "none"
        raise InputError(f"`item` must be the id of one item. Got {item!r}, of {len(rows)} (datasets: {where}).")
    return int(rows[0])


def model_at(model: Model, votes: VoteMatrix, row: int, **matching: bool) -> tuple[Model, dict[str, int]]:
    """Return the model of the dataset of a row, whose P is that of a table of the dataset, and the votes of the row.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
        Of the whole dataset.
    row : int
    **matching : bool
        `allow_mismatch` and `allow_missing`, as in :meth:`deep.model.Model.score`.
    """
    matrix = model.select(votes, **matching)
    name = str(votes.datasets[row])
    there = model if model.target is not None else model.adapted(matrix[votes.datasets == name], target=name)
    return there, dict(zip(model.voter_names, matrix[row].tolist(), strict=True))


def explanation(model: Model, votes: Mapping[str, int]) -> dict[str, object]:
    """Return P, its interval, P without any vote, and the contribution of each vote; the row is scored by itself.

    Parameters
    ----------
    model : Model
    votes : mapping of str to int
        By voter; a voter that is not named has no vote.

    Returns
    -------
    dict
        JSON values.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import explanation
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> found = explanation(model, dict.fromkeys(model.voter_names, 1))
    >>> found["p_consistent"] > found["p_without_votes"], len(found["contributions"])
    (True, 3)
    """
    row = np.array([[votes.get(name, ABSTAIN) for name in model.voter_names]], dtype=np.int8)
    low, high = model.intervals(row, streamed=True)[0]
    return {
        "p_consistent": float(model.score(row, streamed=True)[0]),
        "p_low": float(low),
        "p_high": float(high),
        "p_without_votes": float(model.score(np.full_like(row, ABSTAIN), streamed=True)[0]),
        "prior": asdict(model.prior),
        "contributions": [asdict(contribution) for contribution in model.explain(row[0].tolist())],
    }
