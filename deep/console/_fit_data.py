"""What `deep fit` learns from: votes, soft scores beside them, and labels of the user's own dataset."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from deep import datasets
from deep._checks import Floats
from deep.console._votes import SIMULATED, read_votes_and_scores
from deep.datasets import benchmarks
from deep.exceptions import InputError
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class FitData:
    """Votes, scores and a target that a model is fitted on.

    Parameters
    ----------
    votes : VoteMatrix
    scores : ndarray of float, shape (n_examples, n_scorers), optional
    score_names : tuple of str
    target : str, optional
        The dataset that `--labels` is of.
    provenance : dict
        Where all of it came from.
    """

    votes: VoteMatrix
    scores: Floats | None
    score_names: tuple[str, ...]
    target: str | None
    provenance: dict[str, object]


def read_fit_data(args: argparse.Namespace) -> FitData:
    """Read what the options name.

    Raises
    ------
    InputError
        There are neither votes nor `--simulated`, or both, a table cannot be used, or labels are of several datasets.
    """
    if bool(args.votes) == args.simulated:
        what = "both" if args.votes else "neither"
        raise InputError(f"`VOTES` or `simulated` must be given. Got {what}. Give tables of votes.")
    every, soft = read_votes_and_scores(args)
    if soft is not None:  # a label known beside the scores is known
        every = every.with_columns(labels=soft.labels)
    votes = datasets.choose_datasets(every, only=args.only, exclude=args.exclude)
    target = None
    if args.labels:
        table = datasets.read_labels(args.labels)
        names = sorted(set(table.datasets))
        if len(names) > 1:
            raise InputError(f"`labels` must be of one dataset, your own. Got {', '.join(names)}.")
        votes, target = datasets.join_labels(votes, table), names[0]
    provenance = _provenance(args, votes)
    if soft is None:
        return FitData(votes, None, (), target, provenance)
    # Labels of the target are those of its own file and no others.
    joined = datasets.join_scores(votes, replace(soft, labels=np.full_like(soft.labels, -1)))
    return FitData(votes, joined.scores, soft.score_names, target, provenance)


def _provenance(args: argparse.Namespace, votes: VoteMatrix) -> dict[str, object]:
    files = {name: [Path(path).name for path in getattr(args, name)] for name in ("votes", "labels", "scores")}
    return {
        **{name: value for name, value in files.items() if value},
        "votes": files["votes"] or SIMULATED,
        "voters": datasets.vote_details(args.votes),
        "licences": benchmarks.licence_terms(votes.dataset_names),
    }
