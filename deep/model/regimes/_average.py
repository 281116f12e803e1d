"""One or two labeled datasets: an average of simple aggregators, in which nothing is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from deep._checks import Floats, Texts
from deep.features import distinct_patterns
from deep.model.adaptation import LearnedPrior, LeftOut, LeftOutRows, ShiftedPrior, learn_misfit, learn_prior
from deep.model.chain import enough_for_folds, row_folds
from deep.model.file import Model, voters_of
from deep.model.linear import LabeledRows, Linear, fit_average
from deep.model.regimes._report import report_of
from deep.model.regimes._training import training_cells
from deep.model.score import Blend, Part, VoteSum
from deep.model.stack import in_order
from deep.records import VoteMatrix


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
