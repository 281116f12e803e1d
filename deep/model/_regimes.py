"""The five fits, from rows to a model by `finish`: a stack, an average, votes alone, own labels, a chain asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deep import calibration, ensembles
from deep._util.checks import Floats, Texts, check_choice, factorize
from deep._util.odds import P_MIN, expit, logit, penalised_logistic
from deep._util.scales import scale_sentence
from deep.exceptions import InputError
from deep.features import Cells, Linear, Rows, distinct_patterns
from deep.model import _average, _training
from deep.model._average import AnswerMap, LabeledRows
from deep.model._blend import Blend, Part, VoteSum
from deep.model._correction import FewLabels
from deep.model._misfit import MIN_DATASETS_FOR_SPREAD, HeldOutData, HeldOutRows, Misfit, learn_misfit
from deep.model._model import Model, library_versions
from deep.model._prior import FixedPrior, LearnedPrior, PriorEstimate, PriorRule, context_weight, learn_line, profile_of
from deep.model._table import MAX_TABLE_VOTERS, ChainScorer, PatternTable, Voter, look_up, pattern_grid
from deep.model._training import ChainSpec, FoldCells, InnerFolds, MapLike
from deep.model.options import AVERAGE, STACK, UNCALIBRATED, ChainOptions
from deep.records import VoteMatrix

if TYPE_CHECKING:
    from deep.model import stack
    from deep.model._search import Chain, ChainCandidate


def finish(
    blend: Blend,
    prior_rule: PriorRule,
    misfit: Misfit,
    contexts: Floats,
    left_out: Mapping[str, HeldOutData],
    thresholds: Sequence[float],
    cells: Cells,
    chosen: Mapping[str, object],
    *,
    method: str,
    provenance: Mapping[str, object],
    notes: Sequence[str] = (),
    answer_map: AnswerMap | None = None,
    target: str | None = None,
    context_weight: float = 0.0,
) -> Model:
    """Return the model of a fit, with its report.

    Parameters
    ----------
    blend, prior_rule, misfit, contexts, answer_map, target, context_weight
        As in :class:`deep.model.Model`.
    left_out : mapping of str to HeldOutData
        By dataset: log-odds of P at the estimated prior by fits without its rows.
    thresholds : sequence of float
        The log-odds of P there from which on an item is called consistent.
    cells : Cells
        Training cells, by dataset; their voters are those of the model.
    chosen : mapping
        What was fitted, and how it was chosen.
    method : str
        As in :class:`deep.model.Model`; of 'votes' no label is known, and no share is reported.
    provenance : mapping
        `voters` by name, `licences` by dataset, and whatever else is known.
    notes : sequence of str
        Sentences for the reader.
    """
    # P is scored at the estimated prior, decisions by the rule 'balanced'.
    # Each dataset has a threshold of its own, which follows its mean P where datasets are few (decision 44).
    scores = {name: _left_out_metrics(one, at) for (name, one), at in zip(left_out.items(), thresholds, strict=True)}
    metrics = next(iter(scores.values()), {})
    means = {metric: float(np.mean([row[metric] for row in scores.values()])) for metric in metrics}

    licence_of, details_of = (
        entries if isinstance(entries := provenance.get(key), Mapping) else {} for key in ("licences", "voters")
    )
    labeled = method != "votes"  # whose cells are counted under label 0
    datasets = {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]) if labeled else None,
            "prior": float(size[1] / size.sum()) if labeled else None,
            "licence": licence_of.get(name),
        }
        for name, size in zip(cells.groups, cells.counts.sum(axis=0), strict=True)
    }
    report = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "chosen": dict(chosen),
        "left_out_scores": {"datasets": scores, "mean": means},
        "notes": [*notes, *([] if answer_map is None else [scale_sentence(cells.voter_names, answer_map.scales)])],
        "training_datasets": datasets,
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name not in ("licences", "voters")},
    }
    return Model(
        voters=tuple(Voter(name, details_of.get(name, {})) for name in cells.voter_names),
        method=method,
        blend=blend,
        prior_rule=prior_rule,
        misfit=misfit,
        contexts=contexts,
        cells=cells,
        left_out=left_out,
        fit_report=report,
        target=target,
        context_weight=context_weight,
        answer_map=answer_map,
    )


def _left_out_metrics(one: HeldOutData, threshold: float) -> dict[str, float]:
    """Return the metrics of P at the estimated prior, and of decisions at equal class weights."""
    p, uniform = expit(one.score), one.score - threshold
    label = np.repeat([1, 0], len(p))
    weights = np.concatenate([one.ones, one.zeros])
    positive = weights > 0
    y, twice, w = label[positive], np.tile(p, 2)[positive], weights[positive]
    decided = np.tile(uniform >= 0, 2)[positive]
    bins = {"n_bins": calibration.DEFAULT_BINS, "n_draws": 0}
    metrics = calibration.evaluate(y, twice, sample_weight=w, y_decision=decided, **bins)
    rows = np.rint(one.ones + one.zeros)  # of a weighted sample, the rows that it stands for are about so many
    # ECE of a perfect P is not 0: beside each ECE stands what chance alone leads to on so many rows.
    floor = calibration.ece_noise_floor(p, sample_weight=rows, **bins).mean
    return {name: metrics[name] for name in ("balanced_accuracy", "auroc", "log_loss", "ece")} | {"ece_floor": floor}


def mean_contexts(blend: Blend, datasets: Sequence[Rows]) -> Floats:
    """Return the contexts of the mean training dataset."""
    return np.asarray(np.mean([blend.contexts(blend.raw(one), one.weights) for one in datasets], axis=0))


def training_groups(votes: VoteMatrix, *, by_family: bool = False, random_state: int = 0) -> Texts:
    """Return the group that each labeled row is left out with: its dataset, or all that share documents with it."""
    names, codes = factorize(votes.datasets)
    if len(names) == 1:
        return votes.datasets
    recipe = _training.RECIPES["deep"]
    folds = _training.inner_folds(
        votes, recipe, by_family=by_family, random_state=random_state, limit=_training.STACK_FOLDS
    ).of_row
    # A group is named after the first of its datasets, so that a file shows a name that people know.
    pairs = np.unique(folds * len(names) + codes).tolist()
    first = {pair // len(names): names[pair % len(names)] for pair in reversed(pairs)}
    of_fold = np.array([first.get(fold, "") for fold in range(max(first) + 1)], dtype=object)
    return np.asarray(of_fold[folds])


def training_cells(votes: VoteMatrix) -> Cells:
    """Return the training rows counted by dataset."""
    return Cells.from_rows(votes.votes, labels=votes.labels, groups=votes.datasets, voter_names=votes.voter_names)


@dataclass(frozen=True, eq=False)
class SharedWork:
    """Work that several fits share, how it is done, and what every regime takes with it into its model.

    Parameters
    ----------
    groups : array-like of shape (n_examples,), optional
        What rows are left out with; default: :func:`training_groups`.
    fits : mapping, optional
        Members of the stack that were fitted already, as in :meth:`deep.model.Stack.fit`.
    searched : sequence of ChainCandidate, optional
        Every chain asked for, and maybe others, where :func:`deep.model.search` has found them on these rows already.
    run : callable, optional
        Like `map`; another one may spread the tasks over processes. The result does not depend on it.
    random_state : int, default=0
        Seed of all draws; :func:`fit_asked` sets it.
    provenance : mapping, optional
        `voters` by name, `licences` by dataset, and whatever else is known; :func:`fit_asked` sets it.
    """

    groups: npt.ArrayLike | None = None
    fits: "stack.Fits | None" = None
    searched: "Sequence[ChainCandidate] | None" = None
    run: MapLike = map
    random_state: int = 0
    provenance: Mapping[str, object] = field(default_factory=dict)


def fit_stack_or_average(votes: VoteMatrix, groups: Texts, own: str | None, work: SharedWork) -> Model:
    """Fit the stack on labeled rows, or the average where datasets are few, and draw up its model."""
    answer_map = None if votes.answers is None else AnswerMap.fit(votes)
    n, least = len(factorize(groups)[0]), MIN_DATASETS_FOR_SPREAD
    if own == STACK and n < least:
        raise InputError(f"`ensembler` must not be 'Stack' of fewer than {least} labeled datasets. Got {n}.")
    if own == AVERAGE or n < least:
        return fit_few_datasets(votes, groups, answer_map, work)
    from deep.model import stack  # scikit-learn, which the page of labels does without

    rows, names = stack.labeled_rows(votes.answers_or_votes, votes.labels, groups, None, answer_map)
    # Members that another stack has fitted to the same rows are taken as they are.
    fits = work.fits or stack.fit_shared(rows, names, random_state=work.random_state, run=work.run).without()
    fitted = stack.Stack(random_state=work.random_state).fit_rows(rows, names, fits)
    inner = {"log_loss": fitted.inner_log_loss_, "balanced_accuracy": fitted.inner_balanced_accuracy_}
    sampled = answer_map is not None and len(votes.labels) > _average.MAX_STACK_ROWS
    notes = [
        _training.shared_folds_note(len(votes.dataset_names)),
        _average.sample_note(len(votes.labels)) if sampled else None,
    ]
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
        provenance=work.provenance,
        notes=[note for note in notes if note],
        answer_map=answer_map,
        context_weight=context_weight(n),
    )


def fit_few_datasets(votes: VoteMatrix, groups: Texts, answer_map: AnswerMap | None, work: SharedWork) -> Model:
    """Average three simple ways to add up votes, without any choice, and draw up the model."""
    names, rows = np.unique(groups), LabeledRows.of(votes, groups, answer_map)
    datasets = [rows.only(group) for group in rows.present()]
    scorer = VoteSum(_average.fit_average(_average.in_order(rows)))
    # The statistics of the prior are those of datasets as the fit saw them: left-out ones are noisier than the
    # overfitting that they would mend (decision 26).
    slope, rule = learn_line([HeldOutData.from_rows(scorer(one), *one.of_classes()) for one in datasets])

    # Log-odds by fits that never saw the rows: without their dataset, or without their fold where it is the only one.
    honest: list[tuple[LabeledRows, Floats]] = []
    if len(names) > 1:
        averages = [_average.fit_average(_average.in_order(rows.without(group))) for group in rows.present()]
        honest = [(one, average.log_odds(one.features)) for one, average in zip(datasets, averages, strict=True)]
    elif _training.has_rows_for_folds(votes):
        folds = _training.row_folds(votes, work.random_state)
        log_odds = np.empty(len(folds))
        for fold in np.unique(folds):
            average = _average.fit_average(_average.in_order(rows.rows(folds != fold)))
            log_odds[folds == fold] = average.log_odds(rows.features[folds == fold])
        honest = [(rows, log_odds)]

    # Their prior is estimated as that of a new dataset is.
    points = [HeldOutRows(slope * z, *one.of_classes(), distinct_patterns(one.votes)[1]) for one, z in honest]
    priors = rule.left_out([profile_of(one.log_odds, one.ones + one.zeros) for one in points])
    at_prior = [replace(one, log_odds=prior.line(one.log_odds)) for one, prior in zip(points, priors, strict=True)]
    blend, in_context = Blend((Part("average", scorer, slope=slope),)), context_weight(len(names))
    what = "one labeled dataset" if len(names) == 1 else f"{len(names)} labeled datasets"
    scored = " Its scores are of rows left out in five folds, not of another dataset." if len(names) == 1 else ""
    note = f"With {what} nothing is chosen: best judge, majority and ridge regression are averaged.{scored}"
    return finish(
        blend,
        rule,
        # Rows left out of one dataset do not tell how far off P is on another.
        learn_misfit(at_prior if len(names) > 1 else []),
        mean_contexts(blend, datasets),
        {str(name): one.merged() for name, one in zip(names, at_prior, strict=False)},
        [prior.threshold_in_context(in_context) for prior in priors],
        training_cells(votes),
        {"ensembler": "Average", "members": ["best-judge", "majority", "ridge-votes"]},
        method="average",
        provenance=work.provenance,
        notes=[note],
        answer_map=answer_map,
        context_weight=in_context,
    )


# This candidate is taken unless another is better by more than one standard error of the difference.
DEFAULT_CANDIDATE = "average"


def _fit_naive_bayes(train: LabeledRows) -> Linear:
    model = ensembles.BernoulliNB().fit(train.votes, train.labels, sample_weight=train.balanced())
    zeros, ones = model.vote_log_odds_
    return Linear(0.0, ones, zeros)


def _fit_logistic(train: LabeledRows) -> Linear:
    if train.evidence.shape[1]:
        coef, intercept = penalised_logistic(np.nan_to_num(train.evidence), train.labels, train.balanced(), C=1.0)
        return Linear.signed(intercept, coef)
    model = ensembles.LogisticRegression().fit(train.votes, train.labels, sample_weight=train.balanced())
    return Linear.signed(model.intercept_, model.coef_)


# The ways to add up votes among which the labels of one dataset choose, by name.
CANDIDATE_FITS: dict[str, Callable[[LabeledRows], Linear]] = {
    DEFAULT_CANDIDATE: _average.fit_average,
    "best-judge": _average.fit_best_judge,
    "logistic-votes": _fit_logistic,
    "majority": _average.fit_majority,
    "naive-bayes": _fit_naive_bayes,
    "ridge-votes": _average.fit_ridge,
}


def _candidates(rows: LabeledRows) -> dict[str, Callable[[LabeledRows], Linear]]:
    """Return the candidates for rows; rates of answers are those of votes."""
    return {name: fit for name, fit in CANDIDATE_FITS.items() if name != "naive-bayes" or not rows.evidence.shape[1]}


def fit_own_labels(votes: VoteMatrix, work: SharedWork) -> Model:
    """Learn from the labeled rows of one dataset, a random sample of it, and draw up its model."""
    from deep.model._share import LABEL_MEAN_METHOD, PREDICTION_POWERED_METHOD, Share, estimate_share

    answer_map = None if votes.answers is None else AnswerMap.fit(votes)
    labeled = votes.rows(votes.labels >= 0)
    (name,) = votes.dataset_names
    rows, every = LabeledRows.of(labeled, None, answer_map), LabeledRows.of(votes, None, answer_map)
    folds = _training.row_folds(labeled, work.random_state)
    losses = {key: _fold_losses(rows, folds, fit) for key, fit in _candidates(rows).items()}
    # The candidate is chosen on all folds; `_nested_log_odds` tells on rows that it did not see how good a choice is.
    best = _choose_fit(losses, folds)
    honest, spread = _nested_log_odds(rows, folds)

    # Intervals of the share of the whole dataset know of documents.
    def share(p: Floats, method: str) -> Share:
        shares = estimate_share(p, votes.labels, documents=votes.document_ids)
        return next(share for share in shares if share.method == method)

    plain = share(np.full(len(votes.labels), 0.5), LABEL_MEAN_METHOD)
    shift = float(logit(plain.estimate))
    # Log-odds of rows that neither a fit nor the choice of it saw tell how steep P may be.
    few = FewLabels(learn_misfit([])).fit(expit(honest + shift), labeled.labels, documents=labeled.document_ids)
    intercept, slope = few.coef_.tolist()
    part = Part(best, VoteSum(CANDIDATE_FITS[best](_average.in_order(rows))), intercept + (slope - 1) * shift, slope)
    blend = Blend((part,))
    # The labels' own share is the prior, so log-odds at equal class weights move by it before the line is applied.
    corrected = intercept + slope * (honest + shift)
    # The share that is told: P of all rows, by fits that saw no label of theirs, moved by its mean error on the labels.
    # P itself and its threshold stay at the mean of the labels, by which its slope was learned.
    p = expit(shift + blend.log_odds(blend.raw(every), np.zeros(1)))
    p[votes.labels >= 0] = expit(corrected)
    powered = share(p, PREDICTION_POWERED_METHOD)
    estimate, low, high = (min(max(one, P_MIN), 1 - P_MIN) for one in (powered.estimate, powered.low, powered.high))
    prior = PriorEstimate(estimate, low, high, None, shift)
    note = f"Scores are of rows that neither the fit nor the choice saw: five folds of {len(folds)} labeled rows."
    return finish(
        blend,
        FixedPrior(prior),
        Misfit(np.array([0.0, 1.0]), few.covariance_, int(few.n_effective_), slope * spread),
        mean_contexts(blend, [every]),
        {name: HeldOutData.from_rows(corrected, (rows.labels == 1) * 1.0, (rows.labels == 0) * 1.0)},
        [shift],
        training_cells(labeled),
        {"ensembler": best, "log_loss": {key: float(np.mean(values)) for key, values in losses.items()}},
        method="own-labels",
        provenance=work.provenance,
        notes=[note],
        answer_map=answer_map,
        target=name,
    )


def _fold_losses(rows: LabeledRows, folds: npt.NDArray[np.intp], fit: Callable[[LabeledRows], Linear]) -> Floats:
    """Return the log loss of each row by the fit that did not see its fold, moved to the share of the others."""
    loss = np.empty(len(folds))
    for fold in np.unique(folds):
        test = folds == fold
        others = rows.rows(~test)
        # Half a label of each class (Jeffreys), so that labels of one class leave finite log-odds.
        share = (others.labels.sum() + 0.5) / (len(others.labels) + 1)
        log_odds = fit(_average.in_order(others)).log_odds(rows.features[test]) + float(logit(share))
        loss[test] = np.logaddexp(0.0, np.where(rows.labels[test] == 1, -1.0, 1.0) * log_odds)
    return loss


def _choose_fit(losses: Mapping[str, Floats], folds: npt.NDArray[np.intp]) -> str:
    """Return the candidate of least loss, or the first where it is not better beyond a standard error."""
    best = min(losses, key=lambda name: float(losses[name].mean()))
    gain = losses[DEFAULT_CANDIDATE] - losses[best]
    # One standard error, as in CART's rule (Breiman et al. 1984): among so few candidates the least loss is partly
    # luck.
    error = float(gain.std(ddof=1) / np.sqrt(len(folds)))
    return best if gain.mean() > error else DEFAULT_CANDIDATE


def _nested_log_odds(rows: LabeledRows, folds: npt.NDArray[np.intp]) -> tuple[Floats, float]:
    """Return log-odds of each row by what would have been chosen and fitted without its fold, and how far they vary.

    The jackknife over folds [1]_ tells how far the log-odds of a row vary from sample to sample, beyond what moves
    those of all rows alike: that is the intercept's.

    References
    ----------
    .. [1] R. G. Miller, "The jackknife: a review", Biometrika 61, 1974. https://doi.org/10.1093/biomet/61.1.1
    """
    honest, by_fold = np.empty(len(folds)), []
    for fold in np.unique(folds):
        test = folds == fold
        others = rows.rows(~test)
        inner = folds[~test]
        best = _choose_fit({key: _fold_losses(others, inner, fit) for key, fit in _candidates(rows).items()}, inner)
        log_odds = CANDIDATE_FITS[best](_average.in_order(others)).log_odds(rows.features)
        honest[test] = log_odds[test]
        by_fold.append(log_odds - log_odds.mean())
    # The jackknife's variance: (k - 1) times that between the k fits, which share all rows but a fold's.
    return honest, float(np.sqrt((len(by_fold) - 1) * np.var(by_fold, axis=0).mean()))


# The calibrator's map is written down at these P for people to see.
CURVE_P = np.linspace(0.0, 1.0, 51)

NO_PRIOR_NOTE = "The paper's recipe estimates no prior: P stands as its calibrator gives it."


def fit_chain_model(
    best: "ChainCandidate",
    fold_cells: FoldCells,
    recipe: str,
    work: SharedWork,
    notes: Sequence[str],
) -> Model:
    """Fit a chosen chain on all datasets and without each, and draw up its model."""
    from deep.model._search import fit_chain, predict_left_out, task_seed

    # The same seed as in the search, or the chain that is saved would not be the one that was chosen.
    seed = task_seed(best.ensembler, best.subset.columns, recipe, work.random_state)
    spec = ChainSpec(recipe, best.ensembler, best.params, best.calibrator, seed)
    fitted, cells = fit_chain(spec, fold_cells.training()), fold_cells.by_dataset
    few = len(best.prompts) <= MAX_TABLE_VOTERS
    patterns = pattern_grid(len(best.prompts)) if few else cells.patterns
    table = PatternTable(fitted.predict(patterns), fitted.uncalibrated(patterns)) if few else None
    scorer = ChainScorer(spec, fold_cells, table)
    counts = cells.counts.astype(float).swapaxes(0, 1)

    # The log-odds of each dataset by a chain fitted without it; where datasets are few, by the one fitted on all.
    # Datasets of one fold leave the fit together, and so count as one here.
    enough = fold_cells.n_units >= MIN_DATASETS_FOR_SPREAD
    log_odds: Iterable[Floats]
    if enough:
        by_unit = predict_left_out(spec, fold_cells, patterns, work.run)
        left_out = np.column_stack([look_up(p, cells.patterns) for p in by_unit.T]) if few else by_unit
        log_odds = logit(left_out[:, fold_cells.units]).T
    else:
        log_odds = repeat(logit(scorer.predict(cells.patterns)))
    points = [HeldOutData(z, n[:, 1], n[:, 0]) for z, n in zip(log_odds, counts, strict=False)]

    # The prior of a new dataset, and of each training dataset from the others.
    priors: list[PriorEstimate] = []
    # The paper decides at a half and knows no prior, so its chains keep P as the calibrator gives it.
    if recipe == "paper":
        even = PriorEstimate(0.5, 0.5, 0.5, NO_PRIOR_NOTE)
        rule: PriorRule = FixedPrior(even)
        priors = [even] * len(points) if enough else []
    else:
        profiles = [profile_of(one.score, one.ones + one.zeros) for one in points]
        learned = rule = LearnedPrior().fit(profiles, [one.prior for one in points])
        priors = learned.left_out(profiles) if enough else []
    at_prior = [
        HeldOutRows(prior.line(one.score), one.ones, one.zeros, np.arange(len(one.score)))
        for one, prior in zip(points, priors, strict=False)
    ]

    blend, rows = Blend((Part("chain", scorer),)), Rows.from_arrays(cells.patterns)
    return finish(
        blend,
        rule,
        learn_misfit(at_prior),
        mean_contexts(blend, [replace(rows, weights=size) for size in counts.sum(axis=-1)]),
        {name: one.merged() for name, one in zip(cells.groups, at_prior, strict=False)},
        [prior.threshold for prior in priors],
        cells,
        _describe_chain(best, fitted),
        method="chain",
        provenance=work.provenance,
        notes=[*notes, *([] if enough else [FEW_DATASETS_NOTE.format(fold_cells.n_units)])],
    )


FEW_DATASETS_NOTE = (
    "{} training dataset(s) without common documents cannot show how a new one may differ: intervals are guesses "
    f"below {MIN_DATASETS_FOR_SPREAD}."
)


def _describe_chain(best: "ChainCandidate", fitted: "Chain") -> dict[str, object]:
    """Return the parts of a chain, the scores by which they were chosen, and the map of its calibrator."""
    curve = None
    if fitted.calibrator is not None:
        numbers = {
            name: np.asarray(value).tolist()
            for name, value in vars(fitted.calibrator).items()
            if name.endswith("_") and isinstance(value, float | np.ndarray)
        }
        curve = {"fitted": numbers, "from": CURVE_P.tolist(), "to": fitted.calibrator.transform(CURVE_P).tolist()}
    return {
        "ensembler": best.ensembler,
        "params": dict(best.params),
        "calibrator": best.calibrator,
        "selector": best.subset.selector,
        "inner": {
            "log_loss": best.inner_log_loss,
            "balanced_accuracy": best.inner_balanced_accuracy,
            "accuracy": best.inner_accuracy,
        },
        "calibrator_map": curve,
    }


# The numbers of voters that a search tries by default.
DEFAULT_SUBSET_SIZES: tuple[int | str, ...] = (3, 5, 9)


def fit_chosen_chain(votes: VoteMatrix, options: ChainOptions, groups: Texts | None, work: SharedWork) -> Model:
    """Search for the chain with the best inner score among those asked for, and draw up its model."""
    from deep.model._search import chain_tasks, recommend, search  # every calibrator and selector with it

    name = check_choice(options.recipe or "deep", _training.RECIPES, "recipe")
    recipe = _training.RECIPES[name]
    default = ("platt",) if name == "paper" else (*calibration.CALIBRATORS, UNCALIBRATED)
    calibrators = _names(options.calibrator or default, (*calibration.CALIBRATOR_NAMES, UNCALIBRATED), "calibrator")
    ensemblers = _names(options.ensembler or ensembles.default_ensemblers(name), ensembles.ENSEMBLER_NAMES, "ensembler")
    folds = _training.inner_folds(votes, recipe, random_state=work.random_state)
    if groups is not None and folds.group_by == "dataset":
        folds = InnerFolds(_training.assign_folds(factorize(groups)[1], _training.chain_limit(votes)), folds.group_by)
    training = _training.collapse_folds(votes, folds, options.weighting or recipe.weighting)
    searched = work.searched
    if searched is None:
        tasks = chain_tasks(
            training,
            recipe,
            sizes=DEFAULT_SUBSET_SIZES if options.sizes is None else options.sizes,
            ensemblers=ensemblers,
            calibrators=calibrators,
            selector=options.selector or "auto",
            random_state=work.random_state,
        )
        searched = search(tasks, training.cells.patterns, work.run)
    else:
        searched = [c for c in searched if c.ensembler in ensemblers and (c.calibrator or UNCALIBRATED) in calibrators]
    best = recommend(searched, recipe.criterion)
    training_cells = FoldCells.of_voters(votes, folds, best.subset.columns, training.weighting)
    in_groups = (
        _training.shared_folds_note(len(votes.dataset_names), _training.chain_limit(votes))
        if folds.group_by == "dataset"
        else None
    )
    notes = [note for note in (in_groups, None if options.ensembler else ensembles.missing_libraries_note()) if note]
    return fit_chain_model(best, training_cells, name, work, notes)


def _names(names: Sequence[str], allowed: Iterable[str], param: str) -> tuple[str, ...]:
    return tuple(check_choice(name, allowed, param) for name in names)
