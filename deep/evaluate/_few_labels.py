"""One dataset and a few of its labels: which items to label, and a model's calibration before and after."""

from dataclasses import asdict

import numpy as np

from deep._checks import Floats
from deep.calibration import DEFAULT_BINS, CorpDisplay, ece_noise_floor, expected_calibration_error
from deep.evaluate._target import Target
from deep.exceptions import InputError
from deep.model import Model, labels_needed, propose_labels
from deep.records import VoteMatrix


def label_proposal(
    model: Model, target: Target, n: int, *, strategy: str = "random", random_state: int = 0
) -> dict[str, object]:
    """Propose items of one dataset to label, and the error expected then; labeled items are passed over.

    Parameters
    ----------
    model : Model
        Not corrected by labels of its target.
    target : Target
    n : int
        Items to propose.
    strategy : {'design', 'random', 'spread'}, default='random'
        See :func:`deep.model.propose_labels`.
    random_state : int, default=0

    Returns
    -------
    dict
        JSON values; `labels_needed` is how many the canary needs, by power.

    Raises
    ------
    InputError
        The model was corrected by labels, or there are fewer unlabeled items than `n`.
    """
    check_uncorrected(model)
    votes = target.votes
    found = model.scores_of(votes, scores=target.scores)
    p, labeled = found.p_consistent, np.flatnonzero(votes.labels >= 0)
    chosen = propose_labels(p, model.misfit, n, strategy=strategy, labeled=labeled, random_state=random_state)
    needed = labels_needed(p, model.misfit, random_state=random_state)
    return {
        "dataset": target.name,
        "strategy": strategy,
        "prior": asdict(found.prior),
        "expected_error_before": chosen.error_before,
        "expected_error_after": chosen.error_after,
        "labels_needed": {str(power): size for power, size in needed.items()},
        "items": [{"item_id": str(votes.example_ids[row]), "p_consistent": float(p[row])} for row in chosen.rows],
    }


def check_uncorrected(model: Model) -> None:
    """Raise where labels have corrected a model, by which no items to label can then be proposed."""
    if model.correction is not None:
        raise InputError(
            f"`model` must not be corrected by labels before. Got one with {model.correction.n_labels} of them. "
            "Take the model that it was made of."
        )


def adapt_model(model: Model, target: Target) -> tuple[Model, dict[str, object]]:
    """Return the model of one dataset, and a report on the change.

    Parameters
    ----------
    model : Model
        Of `deep fit`, and not of one dataset already.
    target : Target
        The whole dataset; its labels, where it has some, are of items drawn at random.

    Returns
    -------
    model : Model
    report : dict
        JSON values: the prior, the change of P, the correction by labels, and calibration errors on them before and
        after. The labels flatter the latter, for the correction was learned from them.

    Raises
    ------
    InputError
        The model is one of a dataset already.
    """
    votes, soft = target.votes, target.scores
    fresh = model.adapted(votes, votes.labels, scores=soft, documents=votes.document_ids, target=target.name)
    streamed = model.score(votes, scores=soft, streamed=True)
    unlabeled, found = model.scores_of(votes, scores=soft), fresh.scores_of(votes, scores=soft)
    report: dict[str, object] = {
        "dataset": target.name,
        "n": len(votes.labels),
        "prior": asdict(fresh.prior),
        "p_mean": {
            "streamed": _mean(streamed),
            "unlabeled": _mean(unlabeled.p_consistent),
            "adapted": _mean(found.p_consistent),
        },
        "p_change": _mean(np.abs(found.p_consistent - streamed)),
        "interval_width": {"before": _width(unlabeled.interval()), "after": _width(found.interval())},
        "table": fresh.table is not None,
        "correction": None,
    }
    if fresh.correction is not None:
        parts = ("prior", "intercept", "slope", "n_labels", "n_effective")
        report["correction"] = {part: getattr(fresh.correction, part) for part in parts}
        report["labels"] = _errors(votes, unlabeled.p_consistent, found.p_consistent)
    return fresh, report


def _mean(values: Floats) -> float:
    return float(values.mean())


def _width(bounds: tuple[Floats, Floats]) -> float:
    return _mean(bounds[1] - bounds[0])


def _errors(votes: VoteMatrix, before: Floats, after: Floats) -> dict[str, object]:
    """Return calibration errors on the labels, before and after."""
    known = votes.labels >= 0
    y = votes.labels[known]
    found: dict[str, object] = {"n": len(y), "consistent": int(y.sum())}
    for name, p in (("before", before[known]), ("after", after[known])):
        found[f"ece_{name}"] = expected_calibration_error(y, p, n_bins=DEFAULT_BINS)
        found[f"ece_floor_{name}"] = ece_noise_floor(p, n_bins=DEFAULT_BINS).mean
        found[f"miscalibration_{name}"] = CorpDisplay.from_predictions(y, p, n_resamples=1).miscalibration
    return found
