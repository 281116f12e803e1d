"""What a report is made of: a run, a model, votes, and what P(consistent) of each item is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Mask
from deep._files import JsonObject
from deep.calibration import DEFAULT_BINS
from deep.datasets import Failures, PeopleLabels
from deep.evaluate import labels_seen
from deep.exceptions import InputError
from deep.model import Model, PriorEstimate, fit
from deep.records import ABSTAIN, VoteMatrix

DECISION = "(decision of the run)"
"""Stands for the voters of a run that kept no votes."""


BY_VOTES = (
    "P(consistent) is that of `deep fit` without any label: how often the judges agree is all it knows. Labels, where "
    "there are some, did not enter it, and so can contradict it."
)
BY_SHARE = (
    "P(consistent) is the share of the votes that say so, one vote added on each side: these votes are too few to "
    "learn more from them."
)
BY_MODEL = "P(consistent) is that of the model, each dataset at its estimated share of consistent items."
BY_RUN = "P(consistent) of every item comes from fits that never saw its dataset."


@dataclass(frozen=True, eq=False)
class ScoredVotes:
    """Items with their votes and P(consistent).

    Parameters
    ----------
    votes : VoteMatrix
        Without voters where a run kept none.
    p, low, high : ndarray of float, shape (n_items,)
        P and its 90 % interval; the bounds are nan where there is none.
    before : ndarray of float, shape (n_items,)
        P before calibration.
    decided : ndarray of bool, shape (n_items,)
        Called consistent, both kinds of error counting the same.
    how : str
        A sentence on where P comes from.
    priors : dict of str to PriorEstimate
        By dataset.
    """

    votes: VoteMatrix
    p: Floats
    low: Floats
    high: Floats
    before: Floats
    decided: Mask
    how: str
    priors: dict[str, PriorEstimate] = field(default_factory=dict)

    @property
    def labeled(self) -> Mask:
        """Return which items have a label."""
        return np.asarray(self.votes.labels >= 0)

    def rows(self, chosen: Mask) -> "ScoredVotes":
        """Return some items."""
        parts = {name: getattr(self, name)[chosen] for name in ("p", "low", "high", "before", "decided")}
        return replace(self, votes=self.votes.rows(chosen), **parts)


@dataclass(frozen=True, eq=False)
class ReportMaterial:
    """All that the chapters of a report are written from.

    Parameters
    ----------
    title : str
    runs : tuple of dict
        As `deep loo` writes them; docs/results-schema.md describes every key.
    model : Model, optional
    scored : ScoredVotes, optional
    failures : tuple of Failures
    simulated : bool
        The votes are.
    tables : tuple of str
        Tables of votes, beside which texts and rationales are looked for.
    people : PeopleLabels, optional
        Those who gave the labels, where they lie apart from the votes.
    folder : Path, optional
        Of the run: its own tables and pictures are shown too.
    """

    title: str
    runs: tuple[JsonObject, ...] = ()
    model: Model | None = None
    scored: ScoredVotes | None = None
    failures: tuple[Failures, ...] = ()
    simulated: bool = False
    tables: tuple[str, ...] = ()
    people: PeopleLabels | None = None
    folder: Path | None = None

    @property
    def is_own_decision(self) -> bool:
        """Return whether the votes are the decisions of a run that kept none."""
        return self.scored is not None and self.scored.votes.voter_names == (DECISION,)

    @property
    def learned_from(self) -> tuple[str, ...]:
        """Return the datasets whose labels the model has seen: measured on them, it would look better than it is."""
        if self.model is None or self.scored is None:
            return ()
        known = labels_seen(self.model)
        return tuple(name for name in self.scored.votes.dataset_names if name in known)

    @property
    def measured(self) -> ScoredVotes | None:
        """Return the items that P is measured on: those of datasets whose labels it has not seen."""
        if self.scored is None or not self.learned_from:
            return self.scored
        return self.scored.rows(~np.isin(self.scored.votes.datasets, self.learned_from))

    @property
    def n_bins(self) -> int:
        """Return the number of bins of the calibration error."""
        return int(self.runs[0]["settings"]["n_bins"]) if self.runs else DEFAULT_BINS


def score_by(model: Model, votes: VoteMatrix, how: str) -> ScoredVotes:
    """Return votes with P by a model, each dataset scored by itself; soft scores that the model knows are missing."""
    n = len(votes.labels)
    columns = {name: np.full(n, np.nan) for name in ("p", "low", "high", "before")}
    decided, priors = np.zeros(n, dtype=bool), {}
    for name, rows in dataset_rows(votes):
        part = votes.rows(rows)
        soft = np.full((len(rows), len(model.score_names)), np.nan) if model.score_names else None
        found = model.scores_of(part, scores=soft, allow_mismatch=True, allow_missing=True)
        raw = model.uncalibrated(model.select(part, allow_mismatch=True, allow_missing=True))
        columns["p"][rows], decided[rows] = found.p_consistent, found.decisions
        columns["low"][rows], columns["high"][rows] = found.interval()
        columns["before"][rows] = found.p_uniform if raw is None else raw
        priors[name] = found.prior
    return ScoredVotes(votes, **columns, decided=decided, how=how, priors=priors)


def score_by_votes(votes: VoteMatrix) -> ScoredVotes:
    """Return votes with the P that they give without any label; where too few, with the share that says consistent."""
    share = vote_share(votes.votes)
    try:
        model = fit(replace(votes, labels=np.full(len(votes.labels), ABSTAIN)))
    except InputError:
        unknown = np.full(len(share), np.nan)
        return ScoredVotes(votes, _added(votes.votes), unknown, unknown, share, share >= 0.5, BY_SHARE)
    return replace(score_by(model, votes, BY_VOTES), before=share)


def vote_share(votes: npt.NDArray[np.int8]) -> Floats:
    """Return the share of the votes cast that say consistent, shape (n_items,); a half where there is none."""
    cast = (votes != ABSTAIN).sum(axis=1)
    yes = (votes == 1).sum(axis=1)
    share: Floats = np.divide(yes, cast, out=np.full(len(votes), 0.5), where=cast > 0)
    return share


def _added(votes: npt.NDArray[np.int8]) -> Floats:
    """Return the share of the votes that say consistent with one more vote on each side (rule of succession)."""
    both = np.ones((len(votes), 1), dtype=np.int8)
    return vote_share(np.hstack([votes, both, 1 - both]))


def dataset_rows(votes: VoteMatrix) -> Sequence[tuple[str, npt.NDArray[np.intp]]]:
    """Return the rows of every dataset, in the order of names; the time does not grow with their square."""
    names, codes = np.unique(votes.datasets.astype(str), return_inverse=True)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return list(zip(names.tolist(), parts, strict=True))
