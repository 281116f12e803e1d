"""What is fitted where nothing is asked for: a stack, an average, simple aggregators of own labels, or votes alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from deep import ensembles
from deep._util.checks import Floats, Texts, numbered
from deep._util.files import JsonObject
from deep._util.odds import expit, logit
from deep.calibration import DEFAULT_BINS, balanced_accuracy, ece_noise_floor, evaluate
from deep.features import Cells, distinct_patterns
from deep.model import adaptation, stack
from deep.model.adaptation import FixedPrior, LeftOut, LeftOutRows, Misfit, learn_line, learn_misfit, profile_of
from deep.model.chain import RECIPES, STACK_FOLDS, MapLike, enough_for_folds, grouped_note, inner_folds, row_folds
from deep.model.file import Model, library_versions, voters_of
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
from deep.model.score import Blend, Part, VoteSum
from deep.records import VoteMatrix


def report_of(
    chosen: Mapping[str, object],
    cells: Cells,
    left_out: Mapping[str, LeftOut],
    shifts: Sequence[float],
    provenance: Mapping[str, object],
    *,
    notes: Sequence[str] = (),
    labeled: bool = True,
) -> JsonObject:
    """Return the report on a fitted model.

    Parameters
    ----------
    chosen : dict
        What was fitted, and how it was chosen.
    cells : Cells
        Training cells, by dataset.
    left_out : mapping of str to LeftOut
        By dataset: log-odds of P at the estimated prior by fits without its rows.
    shifts : sequence of float
        The log-odds of those priors.
    provenance : mapping
    notes : sequence of str
    labeled : bool
        Whether the cells have labels.
    """
    scores = {name: _scores(one, shift) for (name, one), shift in zip(left_out.items(), shifts, strict=True)}
    names = next(iter(scores.values()), {})
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "chosen": dict(chosen),
        "left_out_scores": {
            "datasets": scores,
            "mean": {name: float(np.mean([row[name] for row in scores.values()])) for name in names},
        },
        "notes": list(notes),
        "training_datasets": _datasets(cells, provenance.get("licences"), labeled=labeled),
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name not in ("licences", "voters")},
    }


def _scores(one: LeftOut, shift: float) -> dict[str, float]:
    """Return the metrics of P at the estimated prior, and of decisions at equal class weights."""
    p, uniform = expit(one.score), one.score - shift
    label = np.repeat([1, 0], len(p))
    weights = np.concatenate([one.ones, one.zeros])
    kept = weights > 0
    y, twice, w = label[kept], np.tile(p, 2)[kept], weights[kept]
    found = evaluate(y, twice, sample_weight=w, n_bins=DEFAULT_BINS, n_draws=0)
    decided = balanced_accuracy(y, np.tile(uniform >= 0, 2)[kept], sample_weight=w)
    rows = np.rint(one.ones + one.zeros)  # of a weighted sample, the rows that it stands for are about so many
    floor = ece_noise_floor(p, n_bins=DEFAULT_BINS, sample_weight=rows, n_draws=0).mean
    rest = {name: found[name] for name in ("auroc", "log_loss", "ece")}
    return {"balanced_accuracy": decided, **rest, "ece_floor": floor}


def _datasets(cells: Cells, licences: object, *, labeled: bool) -> JsonObject:
    known = licences if isinstance(licences, Mapping) else {}
    sizes = cells.counts.sum(axis=0)
    return {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]) if labeled else None,
            "prior": float(size[1] / size.sum()) if labeled else None,
            "licence": known.get(name),
        }
        for name, size in zip(cells.groups, sizes, strict=True)
    }


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
    cells = training_cells(votes)
    inner = {"log_loss": fitted.inner_log_loss_, "balanced_accuracy": fitted.inner_balanced_accuracy_}
    chosen = {"ensembler": "Stack", "weights": fitted.weights_, "inner": inner}
    report = report_of(
        chosen,
        cells,
        fitted.left_out_,
        fitted.thresholds_,
        provenance,
        notes=_notes(len(votes.dataset_names), 0 if scores is None else len(scores)),
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=score_names,
        method="stack",
        blend=fitted.blend_,
        prior_rule=fitted.prior_,
        misfit=fitted.misfit_,
        contexts=fitted.contexts_,
        cells=cells,
        left_out=fitted.left_out_,
        report=report,
    )


def _notes(n_datasets: int, n_scored: int) -> list[str]:
    notes = [grouped_note(n_datasets), stack.sample_note(n_scored) if n_scored > stack.MOST_ROWS else None]
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
    linear = fit_average(stack.in_order(rows))
    held = _held_datasets(rows) if len(names) > 1 else _held_rows(votes, rows, random_state)
    datasets = [rows.only(group) for group in rows.present()]
    scorer = VoteSum(linear)
    slope, rule = learn_line([LeftOut.from_rows(scorer(one), *one.of_classes()) for one in datasets])
    points = [
        LeftOutRows(slope * log_odds, *one.of_classes(), distinct_patterns(one.votes)[1]) for one, log_odds in held
    ]
    priors = rule.left_out([profile_of(one.log_odds, one.ones + one.zeros) for one in points])
    moved = [replace(one, log_odds=prior.line(one.log_odds)) for one, prior in zip(points, priors, strict=True)]
    blend = Blend((Part("average", scorer, slope=slope),))
    merged = {str(name): one.merged() for name, one in zip(names, moved, strict=False)}
    cells = training_cells(votes)
    chosen = {"ensembler": "Average", "members": ["best-judge", "majority", "ridge-votes"]}
    report = report_of(
        chosen,
        cells,
        merged,
        [prior.threshold for prior in priors],
        provenance,
        notes=[*_few_notes(len(names)), *notes],
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="average",
        blend=blend,
        prior_rule=rule,
        # Rows left out of one dataset do not tell how far off P is on another.
        misfit=learn_misfit(moved if len(names) > 1 else []),
        contexts=stack.mean_contexts(blend, datasets),
        cells=cells,
        left_out=merged,
        report=report,
    )


def _held_datasets(rows: LabeledRows) -> list[tuple[LabeledRows, Floats]]:
    """Return the rows of each dataset with their log-odds by a fit without it."""
    held = [(rows.only(group), fit_average(stack.in_order(rows.without(group)))) for group in rows.present()]
    return [(one, linear.log_odds(one.votes)) for one, linear in held]


def _held_rows(votes: VoteMatrix, rows: LabeledRows, random_state: int) -> list[tuple[LabeledRows, Floats]]:
    """Return the rows of the only dataset with their log-odds by fits without their fold; none where they are few."""
    if not enough_for_folds(votes):
        return []
    folds = row_folds(votes, random_state)
    log_odds = np.empty(len(folds))
    for fold in np.unique(folds):
        log_odds[folds == fold] = fit_average(stack.in_order(rows.rows(folds != fold))).log_odds(
            votes.votes[folds == fold]
        )
    return [(rows, log_odds)]


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
    blend, rows = Blend((Part(found.method, VoteSum(found.linear)),)), Rows.from_arrays(votes.votes)
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
        contexts=np.asarray(blend.contexts(blend.raw(rows), rows.weights)),
        cells=cells,
        left_out={},
        report=report,
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
    prior = _prior(votes)
    shift = float(logit(prior.estimate))
    # Log-odds of rows that neither a fit nor the choice of it saw tell how steep P may be.
    few = adaptation.FewLabels(adaptation.learn_misfit([])).fit(
        expit(honest + shift), labeled.labels, documents=labeled.document_ids
    )
    intercept, slope = few.coef_.tolist()
    part = Part(best, VoteSum(CANDIDATES[best](stack.in_order(rows))), intercept + (slope - 1) * shift, slope)
    blend = Blend((part,))
    moved = intercept + slope * (honest + shift)
    left_out = {name: adaptation.LeftOut.from_rows(moved, (rows.labels == 1) * 1.0, (rows.labels == 0) * 1.0)}
    cells = training_cells(labeled)
    means = {key: float(np.mean(values)) for key, values in losses.items()}
    note = f"Scores are of rows that neither the fit nor the choice saw: five folds of {len(folds)} labeled rows."
    report = report_of({"ensembler": best, "log_loss": means}, cells, left_out, [shift], provenance, notes=[note])
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=(),
        method="own-labels",
        blend=blend,
        prior_rule=adaptation.FixedPrior(prior),
        misfit=adaptation.Misfit(np.array([0.0, 1.0]), few.covariance_, int(few.n_effective_), slope * spread),
        contexts=stack.mean_contexts(blend, [Rows.from_arrays(votes.votes)]),
        cells=cells,
        left_out=left_out,
        report=report,
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
    found, by_fold = np.empty(len(folds)), []
    for fold in np.unique(folds):
        held = folds == fold
        others = rows.rows(~held)
        inner = folds[~held]
        best = _choose({key: _losses(others, inner, fit) for key, fit in CANDIDATES.items()}, inner)
        log_odds = CANDIDATES[best](stack.in_order(others)).log_odds(rows.votes)
        found[held] = log_odds[held]
        by_fold.append(log_odds - log_odds.mean())
    return found, float(np.sqrt((len(by_fold) - 1) * np.var(by_fold, axis=0).mean()))


def _prior(votes: VoteMatrix) -> adaptation.PriorEstimate:
    """Return the share of label 1 in the whole dataset with its interval, which knows of documents."""
    shares = adaptation.estimate_share(np.full(len(votes.labels), 0.5), votes.labels, documents=votes.document_ids)
    found = next(share for share in shares if share.method == adaptation.PLAIN)
    return adaptation.PriorEstimate(found.estimate, found.low, found.high)
