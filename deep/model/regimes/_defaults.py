"""What is fitted where nothing is asked for: a stack, an average, simple aggregators of own labels, or votes alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from deep import ensembles
from deep._util.checks import Floats, Texts, numbered
from deep._util.odds import expit, logit
from deep.features import Cells, distinct_patterns
from deep.model import adaptation, stack
from deep.model.adaptation import FixedPrior, LeftOut, LeftOutRows, Misfit, learn_line, learn_misfit, profile_of
from deep.model.chain import RECIPES, STACK_FOLDS, MapLike, enough_for_folds, grouped_note, inner_folds, row_folds
from deep.model.file import Model
from deep.model.linear import (
    LabeledRows,
    Linear,
    Rows,
    fit_average,
    fit_best_judge,
    fit_majority,
    fit_ridge,
    fit_unlabeled,
)
from deep.model.regimes._finish import finish, mean_contexts
from deep.model.score import Blend, Part, VoteSum
from deep.records import VoteMatrix


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Texts:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names, codes = numbered(votes.datasets)
    if len(names) == 1:
        return votes.datasets
    recipe = RECIPES["deep"]
    folds = inner_folds(votes, recipe, by_family=by_family, random_state=random_state, limit=STACK_FOLDS).of_row
    pairs = np.unique(folds * len(names) + codes).tolist()
    first = {pair // len(names): names[pair % len(names)] for pair in reversed(pairs)}
    of_fold = np.array([first.get(fold, "") for fold in range(max(first) + 1)], dtype=object)
    return np.asarray(of_fold[folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)


def fit_stack(
    votes: VoteMatrix,
    scores: Floats | None,
    score_names: tuple[str, ...],
    groups: Texts,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    fits: "stack.Fits | None",
    run: MapLike,
) -> Model:
    """Fit the stack on labeled rows, and draw up its model."""
    rows, names = stack.labeled_rows(votes.votes, votes.labels, groups, None, scores)
    if fits is None:
        fits = stack.share_fits(rows, names, random_state=random_state, run=run).without()
    fitted = stack.Stack(random_state=random_state).fit_rows(rows, names, fits)
    inner = {"log_loss": fitted.inner_log_loss_, "balanced_accuracy": fitted.inner_balanced_accuracy_}
    sampled = scores is not None and len(scores) > stack.MOST_ROWS
    notes = [grouped_note(len(votes.dataset_names)), stack.sample_note(len(votes.labels)) if sampled else None]
    return finish(
        fitted.blend_,
        fitted.prior_,
        fitted.misfit_,
        fitted.contexts_,
        fitted.left_out_,
        fitted.thresholds_,
        training_cells(votes),
        {"ensembler": "Stack", "weights": fitted.weights_, "inner": inner},
        method="stack",
        provenance=provenance,
        notes=[note for note in notes if note],
        score_names=score_names,
    )


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
    datasets = [rows.only(group) for group in rows.present()]
    scorer = VoteSum(fit_average(stack.in_order(rows)))
    slope, rule = learn_line([LeftOut.from_rows(scorer(one), *one.of_classes()) for one in datasets])

    # Log-odds by fits that never saw the rows: without their dataset, or without their fold where it is the only one.
    held: list[tuple[LabeledRows, Floats]] = []
    if len(names) > 1:
        averages = [fit_average(stack.in_order(rows.without(group))) for group in rows.present()]
        held = [(one, average.log_odds(one.votes)) for one, average in zip(datasets, averages, strict=True)]
    elif enough_for_folds(votes):
        folds = row_folds(votes, random_state)
        log_odds = np.empty(len(folds))
        for fold in np.unique(folds):
            average = fit_average(stack.in_order(rows.rows(folds != fold)))
            log_odds[folds == fold] = average.log_odds(votes.votes[folds == fold])
        held = [(rows, log_odds)]

    # Their prior is estimated as that of a new dataset is.
    points = [LeftOutRows(slope * z, *one.of_classes(), distinct_patterns(one.votes)[1]) for one, z in held]
    priors = rule.left_out([profile_of(one.log_odds, one.ones + one.zeros) for one in points])
    moved = [replace(one, log_odds=prior.line(one.log_odds)) for one, prior in zip(points, priors, strict=True)]
    blend = Blend((Part("average", scorer, slope=slope),))
    what = "one labeled dataset" if len(names) == 1 else f"{len(names)} labeled datasets"
    scored = " Its scores are of rows left out in five folds, not of another dataset." if len(names) == 1 else ""
    note = f"With {what} nothing is chosen: best judge, majority and ridge regression are averaged.{scored}"
    return finish(
        blend,
        rule,
        # Rows left out of one dataset do not tell how far off P is on another.
        learn_misfit(moved if len(names) > 1 else []),
        mean_contexts(blend, datasets),
        {str(name): one.merged() for name, one in zip(names, moved, strict=False)},
        [prior.threshold for prior in priors],
        training_cells(votes),
        {"ensembler": "Average", "members": ["best-judge", "majority", "ridge-votes"]},
        method="average",
        provenance=provenance,
        notes=[note, *notes],
    )


MISFIT = ((1.0, 0.0), (0.0, 0.15))
"""Covariance of intercept and slope by which log-odds may be off where no dataset ever had a label."""

NONE = "No row is labeled: P is learned from the votes alone, and nothing shows how far it is off."
FEW = (
    "Too few rows, or too few documents, of either class are labeled to learn from: P is learned from the votes, and "
    "corrected by the labels."
)


def fit_votes(votes: VoteMatrix, provenance: Mapping[str, object], *, random_state: int) -> Model:
    """Learn from votes without labels, all datasets as one, and draw up the model."""
    fitted = fit_unlabeled(
        votes.votes, voter_names=votes.voter_names, groups=votes.document_ids, random_state=random_state
    )
    blend = Blend((Part(fitted.method, VoteSum(fitted.linear)),))
    # Cells are counted by label, and no label is known: all stand under 0.
    unlabeled = replace(votes, labels=np.zeros(len(votes.labels), dtype=np.int8))
    return finish(
        blend,
        FixedPrior(fitted.prior),
        Misfit(np.array([0.0, 1.0]), np.array(MISFIT), 0),
        mean_contexts(blend, [Rows.from_arrays(votes.votes)]),
        {},
        [],
        training_cells(unlabeled),
        {"ensembler": "Votes", "found": fitted.method},
        method="votes",
        provenance=provenance,
        notes=[FEW if (votes.labels >= 0).any() else NONE, *fitted.warnings],
    )


FIRST = "average"
"""Taken unless another is better by more than one standard error of the difference."""


def _naive_bayes(train: LabeledRows) -> Linear:
    model = ensembles.BernoulliNB().fit(train.votes, train.labels, sample_weight=train.balanced())
    zeros, ones = model.vote_log_odds_
    return Linear(0.0, ones, zeros)


def _logistic(train: LabeledRows) -> Linear:
    model = ensembles.LogisticRegression().fit(train.votes, train.labels, sample_weight=train.balanced())
    return Linear.signed(model.intercept_, model.coef_)


CANDIDATES: dict[str, Callable[[LabeledRows], Linear]] = {
    FIRST: fit_average,
    "best-judge": fit_best_judge,
    "logistic-votes": _logistic,
    "majority": fit_majority,
    "naive-bayes": _naive_bayes,
    "ridge-votes": fit_ridge,
}


def fit_own_labels(votes: VoteMatrix, provenance: Mapping[str, object], *, random_state: int) -> Model:
    """Learn from the labeled rows of one dataset, a random sample of it, and draw up its model."""
    labeled = votes.rows(votes.labels >= 0)
    (name,) = votes.dataset_names
    rows = LabeledRows.of(labeled)
    folds = row_folds(labeled, random_state)
    losses = {key: _losses(rows, folds, fit) for key, fit in CANDIDATES.items()}
    best = _choose(losses, folds)
    honest, spread = _nested(rows, folds)
    # The share of the whole dataset, with an interval that knows of documents.
    shares = adaptation.estimate_share(np.full(len(votes.labels), 0.5), votes.labels, documents=votes.document_ids)
    plain = next(share for share in shares if share.method == adaptation.PLAIN)
    prior = adaptation.PriorEstimate(plain.estimate, plain.low, plain.high)
    shift = float(logit(prior.estimate))
    # Log-odds of rows that neither a fit nor the choice of it saw tell how steep P may be.
    few = adaptation.FewLabels(adaptation.learn_misfit([])).fit(
        expit(honest + shift), labeled.labels, documents=labeled.document_ids
    )
    intercept, slope = few.coef_.tolist()
    part = Part(best, VoteSum(CANDIDATES[best](stack.in_order(rows))), intercept + (slope - 1) * shift, slope)
    blend = Blend((part,))
    moved = intercept + slope * (honest + shift)
    note = f"Scores are of rows that neither the fit nor the choice saw: five folds of {len(folds)} labeled rows."
    return finish(
        blend,
        FixedPrior(prior),
        Misfit(np.array([0.0, 1.0]), few.covariance_, int(few.n_effective_), slope * spread),
        mean_contexts(blend, [Rows.from_arrays(votes.votes)]),
        {name: LeftOut.from_rows(moved, (rows.labels == 1) * 1.0, (rows.labels == 0) * 1.0)},
        [shift],
        training_cells(labeled),
        {"ensembler": best, "log_loss": {key: float(np.mean(values)) for key, values in losses.items()}},
        method="own-labels",
        provenance=provenance,
        notes=[note],
        target=name,
    )


def _left_out(
    rows: LabeledRows, folds: npt.NDArray[np.intp], fit: Callable[[LabeledRows], Linear]
) -> Iterator[tuple[npt.NDArray[np.bool_], Floats, float]]:
    """Yield the rows of each fold, their log-odds by a fit on the others, and the log-odds of the others' share."""
    for fold in np.unique(folds):
        held = folds == fold
        others = rows.rows(~held)
        share = (others.labels.sum() + 0.5) / (len(others.labels) + 1)
        yield held, fit(stack.in_order(others)).log_odds(rows.votes[held]), float(logit(share))


def _losses(rows: LabeledRows, folds: npt.NDArray[np.intp], fit: Callable[[LabeledRows], Linear]) -> Floats:
    """Return the log loss of each row at the share of the others."""
    loss = np.empty(len(folds))
    for held, log_odds, shift in _left_out(rows, folds, fit):
        sign = np.where(rows.labels[held] == 1, -1.0, 1.0)
        loss[held] = np.logaddexp(0.0, sign * (log_odds + shift))
    return loss


def _choose(losses: Mapping[str, Floats], folds: npt.NDArray[np.intp]) -> str:
    """Return the candidate of least loss, or the first where it is not better beyond a standard error."""
    best = min(losses, key=lambda name: float(losses[name].mean()))
    gain = losses[FIRST] - losses[best]
    error = float(gain.std(ddof=1) / np.sqrt(len(folds)))
    return best if gain.mean() > error else FIRST


def _nested(rows: LabeledRows, folds: npt.NDArray[np.intp]) -> tuple[Floats, float]:
    """Return log-odds of each row by what would have been chosen and fitted without its fold, and how far they vary.

    The jackknife over folds [1]_ tells how far the log-odds of a row vary from sample to sample, beyond what moves
    those of all rows alike: that is the intercept's.

    References
    ----------
    .. [1] R. G. Miller, "The jackknife: a review", Biometrika 61, 1974. https://doi.org/10.1093/biomet/61.1.1
    """
    honest, by_fold = np.empty(len(folds)), []
    for fold in np.unique(folds):
        held = folds == fold
        others = rows.rows(~held)
        inner = folds[~held]
        best = _choose({key: _losses(others, inner, fit) for key, fit in CANDIDATES.items()}, inner)
        log_odds = CANDIDATES[best](stack.in_order(others)).log_odds(rows.votes)
        honest[held] = log_odds[held]
        by_fold.append(log_odds - log_odds.mean())
    return honest, float(np.sqrt((len(by_fold) - 1) * np.var(by_fold, axis=0).mean()))
