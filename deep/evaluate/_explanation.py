"""How a model comes to its probability for one item."""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from deep.datasets import resolve_dataset
from deep.evaluate._frames import null_if_nan
from deep.exceptions import InputError
from deep.model import Model
from deep.records import ABSTAIN, VoteMatrix


def votes_on_item(
    model: Model,
    votes: VoteMatrix,
    item: str,
    *,
    dataset: str | None = None,
    allow_mismatch: bool = False,
    allow_missing: bool = False,
) -> dict[str, int]:
    """Return the votes on one item, by voter of a model.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
    item : str
        An example id.
    dataset : str, optional
        Its dataset, where several have an item of that id.
    allow_mismatch, allow_missing : bool, default=False
        As in :meth:`deep.model.Model.score`.

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
    found = model.select(votes.rows(rows), allow_mismatch=allow_mismatch, allow_missing=allow_missing)
    return dict(zip(model.voter_names, found[0].tolist(), strict=True))


def explanation(model: Model, votes: Mapping[str, int]) -> dict[str, object]:
    """Return P, its interval, P without any vote, and the contribution of each vote.

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
    low, high = model.intervals(row)[0]
    return {
        "p_consistent": float(model.score(row)[0]),
        "p_low": null_if_nan(low),
        "p_high": null_if_nan(high),
        "p_without_votes": float(model.score(np.full_like(row, ABSTAIN))[0]),
        "contributions": [asdict(contribution) for contribution in model.explain(row[0].tolist())],
    }
