"""The model of a run: fitted as `deep fit --exclude` fits it, and scored as `deep score` scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from deep._util.checks import Texts, numbered
from deep.console import in_processes
from deep.datasets import ScoreTable
from deep.evaluate import HELD_OUT, HoldOut, Row, decision_metrics, hold_out
from deep.experiments.loo._rivals import context_member
from deep.experiments.loo._tasks import LooOptions
from deep.model import (
    MIN_DATASETS,
    RECIPES,
    STACK,
    Candidate,
    Fits,
    FoldLimit,
    MapLike,
    Model,
    Scores,
    SharedFits,
    SharedWork,
    fit_asked,
    fit_shared,
    inner_folds,
    many_patterns,
    training_groups,
)
from deep.records import VoteMatrix

LEARNED_PRIOR = "learned-prior"
"""In place of a calibrator, where P is calibrated by what datasets left out tell of the members and the prior."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The model fitted on the training data, and its scores of the held-out rows.

    Parameters
    ----------
    model : Model
    scores : Scores
    test : VoteMatrix
    """

    model: Model
    scores: Scores
    test: VoteMatrix

    def row(self, options: LooOptions) -> Row:
        """Return the entry of `results.json`."""
        chosen = cast("dict[str, Any]", self.model.report["chosen"])
        params = chosen.get("params") or {name: chosen[name] for name in ("weights", "members") if name in chosen}
        prior = self.scores.prior
        return {
            "recipe": options.own_recipe,
            "ensembler": chosen["ensembler"],
            "params": params,
            "n_prompts": len(self.model.voters),
            "selector": chosen.get("selector", "all"),
            "prompts": list(self.model.voter_names),
            "scorers": list(self.model.score_names),
            "calibrator": chosen.get("calibrator", LEARNED_PRIOR),
            **decision_metrics(
                self.test.labels,
                self.scores.p_consistent,
                self.scores.decisions,
                n_bins=options.n_bins,
                n_boot=options.n_boot,
                random_state=options.random_state,
            ),
            **self._inner(chosen),
            "method": self.model.method,
            "prior": {
                "estimate": prior.estimate,
                "interval": [prior.low, prior.high],
                "warning": prior.warning,
            },
        }

    def _inner(self, chosen: Mapping[str, Any]) -> Row:
        """Return the scores on training data; of the average those on datasets left out."""
        left_out = cast("dict[str, Any]", self.model.report["left_out_scores"])["mean"]
        inner = chosen.get("inner", left_out)
        names = ("log_loss", "balanced_accuracy", "accuracy")
        return {f"inner_{name}": inner.get(name) for name in names}

    def columns(self) -> Row:
        """Return the columns of `scores.parquet` that hold P, and the number of votes."""
        return self.scores.columns()


def fit_model(
    split: HoldOut,
    scores: ScoreTable | None,
    options: LooOptions,
    *,
    groups: Texts,
    fits: Fits | None,
    searched: Sequence[Candidate] | None,
    run: MapLike,
) -> Model:
    """Fit what is asked for on the training rows.

    Parameters
    ----------
    split : HoldOut
    scores : ScoreTable or None
        Aligned with the whole vote matrix.
    options : LooOptions
    groups : ndarray of str, shape (n_train,)
        What training rows are left out with.
    fits, searched : optional
        As in :class:`deep.model.SharedWork`: what was fitted already.
    run : callable
        Like `map`.
    """
    # The groups of datasets are those that `fit` finds itself; it knows no families.
    work = SharedWork(groups if options.unit == "family" else None, fits, searched, run)
    return fit_asked(
        split.train,
        options.asked,
        work,
        scores=_rows(scores, split.train_rows),
        score_names=() if scores is None else scores.score_names,
        random_state=options.random_state,
    )


def score_held_out(model: Model, split: HoldOut, scores: ScoreTable | None) -> Fitted:
    """Score the rows of a held-out dataset."""
    soft = _rows(scores, split.test_rows) if model.score_names else None
    return Fitted(model, model.scores_of(split.test, scores=soft), split.test)


def _rows(scores: ScoreTable | None, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.float64] | None:
    return None if scores is None else scores.scores[rows]


def groups_of(split: HoldOut, options: LooOptions) -> Texts:
    """Return the group that each training row is left out with."""
    return training_groups(split.train, by_family=options.unit == "family", random_state=options.random_state)


def held_out_together(votes: VoteMatrix, tests: Sequence[str], options: LooOptions) -> list[list[str]]:
    """Return the datasets to hold out, each alone or, where they are many, in groups of those held out together.

    Where patterns of votes are many, more datasets than there are groups are. Datasets with common documents are in one
    group, and siblings where families are held out.
    """
    if len(tests) <= (HELD_OUT.folds if many_patterns(votes) else HELD_OUT.above):
        return [[test] for test in tests]
    kept = votes.rows(np.isin(votes.datasets.astype(str), list(tests)))
    limit = FoldLimit(HELD_OUT.folds, HELD_OUT.folds)
    folds = inner_folds(kept, RECIPES["deep"], by_family=options.unit == "family", limit=limit).of_row
    groups: dict[int, list[str]] = {}
    for name, first in zip(*np.unique(kept.datasets.astype(str), return_index=True), strict=True):
        groups.setdefault(int(folds[first]), []).append(str(name))
    return list(groups.values())


def run_over(options: LooOptions) -> MapLike:
    """Return a map over as many processes as the options say."""
    return partial(in_processes, n_jobs=options.n_jobs)


def member_fits(
    split: HoldOut, scores: ScoreTable | None, options: LooOptions, groups: Texts, run: MapLike
) -> Fits | None:
    """Fit the members that the model and the best judge with its context need; None of fewer than three groups."""
    if len(numbered(groups)[0]) < MIN_DATASETS:
        return None
    return fit_shared(
        split.train.votes,
        split.train.labels,
        groups=groups,
        scores=_rows(scores, split.train_rows),
        members=_members(scores, options),
        random_state=options.random_state,
        run=run,
    ).without()


def shared_fits(
    votes: VoteMatrix,
    tests: Sequence[str],
    scores: ScoreTable | None,
    options: LooOptions,
    members: Sequence[str] | None = None,
) -> SharedFits | None:
    """Fit the members that several held-out datasets have in common, or return None where each has its own.

    They have them in common where nothing is left out of the training but the dataset held out: every row is
    labeled, and no two datasets share a document. `members` are by default those that the options need.
    """
    names = votes.dataset_names
    alone = len(tests) < 2 or options.unit != "dataset" or len(names) <= MIN_DATASETS
    if alone or (votes.labels < 0).any():
        return None
    # Two splits show every dataset that is trained on.
    if any(set(hold_out(votes, test).train.dataset_names) != set(names) - {test} for test in tests[:2]):
        return None
    if len(numbered(training_groups(votes))[0]) < len(names):
        return None
    return fit_shared(
        votes.votes,
        votes.labels,
        groups=votes.datasets,
        scores=None if scores is None else scores.scores,
        targets=tests,
        members=members or _members(scores, options),
        random_state=options.random_state,
        run=run_over(options),
    )


def _members(scores: ScoreTable | None, options: LooOptions) -> list[str] | None:
    """Return the members to fit: all for a stack or with scores, else those of the best judge with its context."""
    if scores is not None or not options.asked.asked or options.asked.own == STACK:
        return None
    return [context_member(0)]
