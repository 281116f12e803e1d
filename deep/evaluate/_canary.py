"""The canary of a model: whether labels of a dataset agree with the probabilities that it was given."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

import numpy as np

from deep.evaluate._target import Target
from deep.exceptions import InputError
from deep.model import SIGNIFICANCE, Canary, Model, Scores, canary, labels_needed

ENOUGH = 50
"""Labels from which on correcting P by them is worth more than testing it."""


def canary_report(model: Model, target: Target, *, alpha: float = SIGNIFICANCE) -> dict[str, object]:
    """Test whether the labels of a dataset agree with P as the model gives it there without them.

    Parameters
    ----------
    model : Model
    target : Target
        The whole dataset, of which items drawn at random have labels.
    alpha : float in (0, 1), default=0.05
        Share of datasets like the training datasets that are flagged by chance.

    Returns
    -------
    dict
        JSON values: those of :class:`deep.model.Canary`, the `prior`, whether the dataset is `flagged`, how many
        labels are needed to find a dataset like the training dataset on which P was furthest off (`labels_needed`,
        by power), and whether the labels are `enough` to correct P with.

    Raises
    ------
    InputError
        There is no label, or `alpha` is not in (0, 1).

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, canary_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> model = fit(votes.rows(~mine))
    >>> found = canary_report(model, Target(votes.rows(mine)))
    >>> found["n_labels"], found["flagged"] == (found["p_value"] < 0.05), found["enough"]
    (558, True, True)
    """
    if not 0 < alpha < 1:
        raise InputError(f"`alpha` must lie strictly between 0 and 1. Got {alpha!r}.")
    votes = target.votes
    found, test = dataset_canary(model, target)
    needed = labels_needed(found.p_consistent, model.misfit)
    documents = None if votes.document_ids is None else len(np.unique(votes.document_ids[votes.labels >= 0]))
    return {
        "dataset": target.name,
        "n": len(votes.labels),
        "alpha": alpha,
        "flagged": test.p_value < alpha,
        **asdict(test),
        "documents": documents,
        "prior": asdict(found.prior),
        "labels_needed": {str(power): size for power, size in needed.items()},
        "enough": test.n_labels >= ENOUGH,
        "advice": [*_warned(model, target.name), *_advice(model, test, needed, flagged=test.p_value < alpha)],
    }


def dataset_canary(model: Model, target: Target) -> tuple[Scores, Canary]:
    """Score a dataset without its labels, and test the labels against that.

    Parameters
    ----------
    model : Model
    target : Target
        The whole dataset, of which items drawn at random have labels.

    Returns
    -------
    (Scores, Canary)

    Raises
    ------
    InputError
        There is no label.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, dataset_canary
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> scores, test = dataset_canary(fit(votes.rows(~mine)), Target(votes.rows(mine)))
    >>> len(scores.p_consistent), test.n_labels
    (558, 558)
    """
    votes = target.votes
    found = model.scores_of(votes, scores=target.scores)
    return found, canary(found.p_consistent, votes.labels, documents=votes.document_ids, misfit=model.misfit)


def labels_seen(model: Model) -> set[str]:
    """Find the datasets by whose labels a model was fitted or corrected.

    Parameters
    ----------
    model : Model

    Returns
    -------
    set of str
        Their names; empty for a model of votes alone.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import labels_seen
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> sorted(labels_seen(fit(votes.rows(votes.datasets == "aggrefact-xsum"))))
    ['aggrefact-xsum']
    """
    training = model.report["training_datasets"]
    assert isinstance(training, dict)  # as every fit writes it
    seen = {name for name, row in training.items() if row["prior"] is not None}
    corrected = {str(model.target)} if model.correction is not None else set()
    return seen | corrected


def _warned(model: Model, name: str) -> Iterator[str]:
    """Yield a warning where the labels may be those that the model has learned from."""
    if name in labels_seen(model):
        yield "The model has learned from labels of this dataset: only labels that it has not seen can test it."


def _advice(model: Model, test: Canary, needed: Mapping[float, int | None], *, flagged: bool) -> Iterator[str]:
    """Yield advice in sentences."""
    n = test.n_labels
    adapt = "`deep adapt`" if model.target is None else "`deep adapt` of the model that this one was made of"
    if flagged:
        yield "Do not use P as it is, nor its interval, on this dataset."
    else:
        found = [f"{size} for {100 * power:.0f} %" for power, size in needed.items() if size is not None]
        wanted = ", ".join(found) or "more labels than there are items"
        yield f"To find a dataset as far off as the worst in training takes, by the chance of finding it: {wanted}."
    if n >= ENOUGH:
        yield f"{n} labels are worth more than a test: {adapt} corrects P by them."
    elif flagged:
        yield f"{adapt} corrects P by these labels; {ENOUGH} do most of it (`deep label list`)."
