"""One dataset and a few of its labels: which items to label, and what the labels do to a model's calibration."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from deep.calibration import CorpDisplay, VennAbers, ece_noise_floor, expected_calibration_error
from deep.datasets import read_votes
from deep.exceptions import InputError
from deep.model import Model, other_columns, propose_labels
from deep.records import VoteMatrix

N_BINS = 8


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


def label_proposal(
    model: Model, votes: VoteMatrix, n: int, *, strategy: str = "random", random_state: int = 0
) -> dict[str, object]:
    """Propose items of one dataset to label, and say what error to expect then; labeled items are passed over.

    Parameters
    ----------
    model : Model
        Fitted on three datasets or more, and not calibrated on labels of its target.
    votes : VoteMatrix
        Of one dataset.
    n : int
        Items to propose.
    strategy : {'design', 'random', 'spread'}, default='random'
        See :func:`deep.model.propose_labels`.
    random_state : int, default=0

    Raises
    ------
    InputError
        The model cannot estimate a prior, or there are fewer unlabeled items than `n`.
    """
    if model.correction is not None or model.adaptation is None:
        raise InputError("`model` must be one of `deep fit` on three datasets or more. Got another.")
    prior = model.estimate_prior(votes)
    p = model.score(votes, prior=prior.estimate)
    labeled = np.flatnonzero(votes.labels >= 0)
    misfit = model.adaptation.misfit
    found = propose_labels(p, misfit, n, strategy=strategy, labeled=labeled, random_state=random_state)
    return {
        "dataset": votes.dataset_names[0],
        "strategy": strategy,
        "prior": asdict(prior),
        "expected_error_before": found.error_before,
        "expected_error_after": found.error_after,
        "items": [{"item_id": str(votes.example_ids[row]), "p_consistent": float(p[row])} for row in found.rows],
    }


def calibrate_on_labels(
    model: Model, votes: VoteMatrix, everything: VoteMatrix | None = None
) -> tuple[Model, dict[str, object]]:
    """Correct a model with the labels of one dataset.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
        Rows without a label are passed over.
    everything : VoteMatrix, optional
        Votes of the whole dataset, from which its class prior is estimated; default: the labeled rows. Other
        datasets in it are passed over.

    Returns
    -------
    model : Model
    report : dict
        JSON values: the correction, and calibration errors on the labels before and after. The labels flatter the
        latter, for the correction was learned from them.

    Raises
    ------
    InputError
        There is no label, there are labels of several datasets, or `everything` lacks the dataset.
    """
    labeled = votes.rows(votes.labels >= 0)
    if not len(labeled.labels):
        raise InputError("`labels` must have rows with a label of 0 or 1. Got none.")
    if len(labeled.dataset_names) > 1:
        raise InputError(f"`labels` must be of one dataset. Got {', '.join(labeled.dataset_names)}.")
    (name,) = labeled.dataset_names
    everything = labeled if everything is None else everything
    if name not in everything.dataset_names:
        raise InputError(f"`votes` must hold the dataset of the labels, {name!r}. Got none of it.")
    whole = everything.rows(everything.datasets == name)
    fresh = model.calibrated(labeled, labeled.labels, everything=whole)
    correction = {part: getattr(fresh.correction, part) for part in ("prior", "intercept", "slope", "n_labels")}
    return fresh, {"dataset": name, "correction": correction, **_errors(model, fresh, labeled)}


def _errors(model: Model, fresh: Model, labeled: VoteMatrix) -> dict[str, object]:
    """Return calibration errors on the labels, before and after."""
    before, after = model.score(labeled), fresh.score(labeled)
    found: dict[str, object] = {"labels": len(labeled.labels), "consistent": int((labeled.labels == 1).sum())}
    for name, p in (("before", before), ("after", after)):
        found[f"ece_{name}"] = expected_calibration_error(labeled.labels, p, n_bins=N_BINS)
        found[f"ece_floor_{name}"] = ece_noise_floor(p, n_bins=N_BINS).mean
        found[f"miscalibration_{name}"] = CorpDisplay.from_predictions(labeled.labels, p, n_resamples=1).miscalibration
    if len(np.unique(labeled.labels)) == 2:
        low, high = VennAbers().fit(before, labeled.labels).interval(before).T
        found["venn_abers_width"] = float((high - low).mean())
    return found
