"""What is fitted where nothing is asked for: a stack, an average, or the votes alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from deep._util.checks import Floats, Texts
from deep.features import Cells, distinct_patterns
from deep.model.adaptation import (
    FixedPrior,
    LearnedPrior,
    LeftOut,
    LeftOutRows,
    Misfit,
    ShiftedPrior,
    learn_misfit,
    learn_prior,
)
from deep.model.chain import MapLike, enough_for_folds, grouped_note, row_folds
from deep.model.file import Model, voters_of
from deep.model.linear import LabeledRows, Linear, fit_average, fit_unlabeled
from deep.model.regimes._report import report_of, training_cells
from deep.model.score import Blend, Part, VoteSum
from deep.model.stack import MOST_ROWS, Fits, Stack, in_order, labeled_rows, sample_note, share_fits
from deep.records import VoteMatrix


def fit_stack(
    votes: VoteMatrix,
    scores: Floats | None,
    score_names: tuple[str, ...],
    groups: Texts,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    fits: Fits | None,
    run: MapLike,
) -> Model:
    """Fit the stack on labeled rows, and draw up its model."""
    rows, names = labeled_rows(votes.votes, votes.labels, groups, None, scores)
    if fits is None:
        fits = share_fits(rows, names, random_state=random_state, run=run).without()
    stack = Stack(random_state=random_state).fit_rows(rows, names, fits)
    cells = training_cells(votes)
    inner = {"log_loss": stack.inner_log_loss_, "balanced_accuracy": stack.inner_balanced_accuracy_}
    chosen = {"ensembler": "Stack", "weights": stack.weights_, "inner": inner}
    report = report_of(
        chosen,
        cells,
        stack.left_out_,
        stack.prior_.left_out_.tolist(),
        provenance,
        notes=_notes(len(votes.dataset_names), 0 if scores is None else len(scores)),
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=score_names,
        method="stack",
        blend=stack.blend_,
        prior_rule=stack.prior_,
        misfit=stack.misfit_,
        contexts=stack.prior_.statistic_.mean(axis=0),
        cells=cells,
        left_out=stack.left_out_,
        report=report,
    )


def _notes(n_datasets: int, n_scored: int) -> list[str]:
    notes = [grouped_note(n_datasets), sample_note(n_scored) if n_scored > MOST_ROWS else None]
    return [note for note in notes if note]


def fit_few(
    votes: VoteMatrix,
    groups: Texts,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    notes: Sequence[str] = (),
) -> Model:
    """Average three simple ways to add up votes, without any choice, and draw up the model."""
    names, rows = np.unique(groups), LabeledRows.of(votes, groups)
    linear = fit_average(in_order(rows))
    held = _held_datasets(rows) if len(names) > 1 else _held_rows(votes, rows, random_state)
    points = [_row_points(one, log_odds) for one, log_odds in held]
    rule = _rule(points, rows, linear)
    shifts = rule.left_out_.tolist()
    moved = [replace(one, log_odds=one.log_odds + shift) for one, shift in zip(points, shifts, strict=False)]
    merged = {str(name): LeftOut.from_rows(m.log_odds, m.ones, m.zeros) for name, m in zip(names, moved, strict=False)}
    cells = training_cells(votes)
    chosen = {"ensembler": "Average", "members": ["best-judge", "majority", "ridge-votes"]}
    report = report_of(
        chosen, cells, merged, shifts[: len(merged)], provenance, notes=[*_few_notes(len(names)), *notes]
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="average",
        blend=Blend((Part("average", VoteSum(linear)),)),
        prior_rule=rule,
        # Rows left out of one dataset do not tell how far off P is on another.
        misfit=learn_misfit(moved if len(names) > 1 else []),
        contexts=rule.statistic_.mean(axis=0),
        cells=cells,
        left_out=merged,
        report=report,
    )


def _rule(points: Sequence[LeftOutRows], rows: LabeledRows, linear: Linear) -> LearnedPrior | ShiftedPrior:
    """Return how the prior of a new dataset is told."""
    merged = [LeftOut.from_rows(one.log_odds, one.ones, one.zeros) for one in points]
    if len(merged) > 1:
        return learn_prior([[one] for one in merged])
    seen = merged[0] if merged else _merged(rows, linear.log_odds(rows.votes))
    return ShiftedPrior().fit([[seen.context]], [seen.prior])


def _held_datasets(rows: LabeledRows) -> list[tuple[LabeledRows, Floats]]:
    """Return the rows of each dataset with their log-odds by a fit without it."""
    held = [(rows.only(group), fit_average(in_order(rows.without(group)))) for group in rows.present()]
    return [(one, linear.log_odds(one.votes)) for one, linear in held]


def _held_rows(votes: VoteMatrix, rows: LabeledRows, random_state: int) -> list[tuple[LabeledRows, Floats]]:
    """Return the rows of the only dataset with their log-odds by fits without their fold; none where they are few."""
    if not enough_for_folds(votes):
        return []
    folds = row_folds(votes, random_state)
    log_odds = np.empty(len(folds))
    for fold in np.unique(folds):
        log_odds[folds == fold] = fit_average(in_order(rows.rows(folds != fold))).log_odds(votes.votes[folds == fold])
    return [(rows, log_odds)]


def _merged(rows: LabeledRows, log_odds: Floats) -> LeftOut:
    return LeftOut.from_rows(log_odds, rows.weights * (rows.labels == 1), rows.weights * (rows.labels == 0))


def _row_points(one: LabeledRows, log_odds: Floats) -> LeftOutRows:
    cell = distinct_patterns(one.votes)[1]
    return LeftOutRows(log_odds, one.weights * (one.labels == 1), one.weights * (one.labels == 0), cell)


def _few_notes(n: int) -> list[str]:
    what = "one labeled dataset" if n == 1 else f"{n} labeled datasets"
    scored = " Its scores are of rows left out in five folds, not of another dataset." if n == 1 else ""
    return [f"With {what} nothing is chosen: best judge, majority and ridge regression are averaged.{scored}"]


MISFIT = ((1.0, 0.0), (0.0, 0.15))
"""Covariance of intercept and slope by which log-odds may be off where no dataset ever had a label."""

NONE = "No row is labeled: P is learned from the votes alone, and nothing shows how far it is off."
FEW = (
    "Too few rows, or too few documents, of either class are labeled to learn from: P is learned from the votes, and "
    "corrected by the labels."
)


def fit_votes(votes: VoteMatrix, provenance: Mapping[str, object], *, random_state: int) -> Model:
    """Learn from votes without labels, all datasets as one, and draw up the model."""
    found = fit_unlabeled(
        votes.votes, voter_names=votes.voter_names, groups=votes.document_ids, random_state=random_state
    )
    blend = Blend((Part(found.method, VoteSum(found.linear)),))
    # Cells are counted by label, and no label is known: all stand under 0.
    labels = np.zeros(len(votes.labels), dtype=np.int8)
    cells = Cells.from_rows(votes.votes, labels=labels, groups=votes.datasets, voter_names=votes.voter_names)
    notes = [FEW if (votes.labels >= 0).any() else NONE]
    chosen = {"ensembler": "Votes", "found": found.method}
    report = report_of(chosen, cells, {}, [], provenance, notes=[*notes, *found.warnings], labeled=False)
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="votes",
        blend=blend,
        prior_rule=FixedPrior(found.prior),
        misfit=Misfit(np.array([0.0, 1.0]), np.array(MISFIT), 0),
        contexts=np.zeros(1),
        cells=cells,
        left_out={},
        report=report,
    )
