"""Three labeled datasets or more: a pool. One or two: an average in which nothing is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.features import Cells, distinct_patterns
from deep.model.chain import MAX_FOLDS, RECIPES, MapLike, enough_for_folds, grouped_note, inner_folds, row_folds
from deep.model.file import Model, voters_of
from deep.model.linear import LabeledRows, Linear, fit_average
from deep.model.pool import Blend, Fits, Part, Pool, VoteSum, fit_shared, in_order
from deep.model.regimes._report import report_of
from deep.model.target import LearnedPrior, LeftOut, LeftOutRows, ShiftedPrior, learn_misfit, learn_prior
from deep.records import VoteMatrix

Groups = npt.NDArray[np.str_]


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Groups:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names = votes.datasets.astype(str)
    if len(votes.dataset_names) == 1:
        return names
    folds = inner_folds(votes, RECIPES["deep"], by_family=by_family, random_state=random_state).of_row
    first = {int(fold): min(names[folds == fold].tolist()) for fold in np.unique(folds)}
    return np.array([first[int(fold)] for fold in folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)


def fit_pool(
    votes: VoteMatrix,
    scores: Floats | None,
    score_names: tuple[str, ...],
    groups: Groups,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    fits: Fits | None,
    run: MapLike,
) -> Model:
    """Fit the pool on labeled rows, and draw up its model."""
    if fits is None:
        fitted = fit_shared(votes.votes, votes.labels, groups=groups, scores=scores, random_state=random_state, run=run)
        fits = fitted.without()
    pool = Pool(random_state=random_state).fit(votes.votes, votes.labels, groups=groups, scores=scores, fits=fits)
    cells = training_cells(votes)
    inner = {"log_loss": pool.inner_log_loss_, "balanced_accuracy": pool.inner_balanced_accuracy_}
    chosen = {"ensembler": "Pool", "weights": pool.weights_, "inner": inner}
    report = report_of(
        chosen,
        cells,
        pool.left_out_,
        pool.prior_.left_out_.tolist(),
        provenance,
        notes=_notes(len(votes.dataset_names)),
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=score_names,
        method="pool",
        blend=pool.blend_,
        prior_rule=pool.prior_,
        misfit=pool.misfit_,
        contexts=pool.prior_.statistic_.mean(axis=0),
        cells=cells,
        left_out=pool.left_out_,
        report=report,
    )


def _notes(n_datasets: int) -> list[str]:
    return [grouped_note(n_datasets)] if n_datasets > MAX_FOLDS else []


def fit_few(
    votes: VoteMatrix,
    groups: Groups,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    notes: Sequence[str] = (),
) -> Model:
    """Average three simple ways to add up votes, without any choice, and draw up the model."""
    names, codes = np.unique(groups, return_inverse=True)
    rows = LabeledRows(votes.votes, np.empty((len(codes), 0)), np.ones(len(codes)), votes.labels, codes)
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
