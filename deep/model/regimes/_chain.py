"""A chain that was asked for: voters, one ensembler, one calibrator, chosen among those named."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from deep import calibration, ensembles
from deep._util.checks import Floats, Texts, Votes, check_choice, numbered
from deep._util.odds import logit
from deep.exceptions import InputError
from deep.features import Cells
from deep.model import adaptation, chain, stack
from deep.model.file import MAX_TABLE_VOTERS, ChainScorer, Model, Table, look_up, pattern_grid, voters_of
from deep.model.linear import Rows
from deep.model.regimes._defaults import report_of
from deep.model.score import Blend, Part
from deep.records import VoteMatrix

CURVE = np.linspace(0.0, 1.0, 51)
"""Where the calibrator's map is written down for people to see."""

UNMOVED = "The paper's recipe estimates no prior: P stands as its calibrator gives it."


def chain_model(
    best: "chain.Candidate",
    kept: chain.KeptCells,
    recipe: str,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    run: chain.MapLike = map,
    notes: Sequence[str] = (),
) -> Model:
    """Fit a chosen chain on all datasets and without each, and draw up its model."""
    seed = chain.task_seed(best.ensembler, best.subset.columns, recipe, random_state)
    spec = chain.ChainSpec(recipe, best.ensembler, best.params, best.calibrator, seed)
    fitted, cells = chain.fit_chain(spec, kept.training()), kept.by_dataset
    few = len(best.prompts) <= MAX_TABLE_VOTERS
    grid = pattern_grid(len(best.prompts)) if few else cells.patterns
    scorer = ChainScorer(spec, kept, Table(fitted.predict(grid), fitted.uncalibrated(grid)) if few else None)
    points = _left_out(spec, kept, grid, run, table=few) if kept.n_units >= adaptation.MIN_DATASETS else []
    blend = Blend((Part("chain", scorer),))
    rule, priors = _rule(points, cells, scorer, recipe)
    rows = [
        adaptation.LeftOutRows(prior.line(one.score), one.ones, one.zeros, np.arange(len(one.score)))
        for one, prior in zip(points, priors, strict=True)
    ]
    shifts = [prior.threshold for prior in priors]
    merged = {name: one.merged() for name, one in zip(cells.groups, rows, strict=False)}
    return Model(
        voters=voters_of(best.prompts, provenance),
        score_names=(),
        method="chain",
        blend=blend,
        prior_rule=rule,
        misfit=adaptation.learn_misfit(rows),
        contexts=_contexts(blend, cells),
        cells=cells,
        left_out=merged,
        report=report_of(_chosen(best, fitted), cells, merged, shifts, provenance, notes=[*notes, *_few_note(kept)]),
    )


def _left_out(
    spec: chain.ChainSpec, kept: chain.KeptCells, grid: Votes, run: chain.MapLike, *, table: bool
) -> list[adaptation.LeftOut]:
    """Return each dataset's log-odds by the chain fitted without it; `table`: `grid` holds every pattern."""
    cells = kept.by_dataset
    by_unit = chain.predict_left_out(spec, kept, grid, run)
    held = np.column_stack([look_up(p, cells.patterns) for p in by_unit.T]) if table else by_unit
    return _by_dataset(logit(held[:, kept.units]).T, cells)


def _by_dataset(log_odds: Iterable[Floats], cells: Cells) -> list[adaptation.LeftOut]:
    """Return the points of each dataset, from the log-odds of all patterns there."""
    counts = cells.counts.astype(float).swapaxes(0, 1)
    return [adaptation.LeftOut(z, n[:, 1], n[:, 0]) for z, n in zip(log_odds, counts, strict=False)]


def _rule(
    points: Sequence[adaptation.LeftOut], cells: Cells, scorer: ChainScorer, recipe: str
) -> tuple[adaptation.PriorRule, list[adaptation.PriorEstimate]]:
    """Return how the prior of a new dataset is told, and those of the training datasets, each from the others."""
    if recipe == "paper":
        even = adaptation.PriorEstimate(0.5, 0.5, 0.5, UNMOVED)
        return adaptation.FixedPrior(even), [even] * len(points)
    seen = points or _by_dataset(repeat(logit(scorer.predict(cells.patterns))), cells)
    profiles = [adaptation.profile_of(one.score, one.ones + one.zeros) for one in seen]
    rule = adaptation.LearnedPrior().fit(profiles, [one.prior for one in seen])
    return rule, rule.left_out(profiles) if points else []


def _contexts(blend: Blend, cells: Cells) -> Floats:
    """Return the contexts of the mean training dataset."""
    rows = Rows.from_arrays(cells.patterns)
    sizes = cells.counts.sum(axis=-1).astype(float)
    return stack.mean_contexts(blend, [replace(rows, weights=size) for size in sizes.T])


def _chosen(best: "chain.Candidate", fitted: "chain.Chain") -> dict[str, object]:
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
        "calibrator_map": _calibrator_map(fitted),
    }


def _calibrator_map(found: "chain.Chain") -> dict[str, object] | None:
    """Return the calibrator's fitted numbers and its curve; None where there is none."""
    if found.calibrator is None:
        return None
    fitted = {
        name: np.asarray(value).tolist()
        for name, value in vars(found.calibrator).items()
        if name.endswith("_") and isinstance(value, float | np.ndarray)
    }
    return {"fitted": fitted, "from": CURVE.tolist(), "to": found.calibrator.transform(CURVE).tolist()}


def _few_note(kept: chain.KeptCells) -> list[str]:
    if kept.n_units >= adaptation.MIN_DATASETS:
        return []
    return [
        f"{kept.n_units} training dataset(s) without common documents do not show how far a new one may lie from "
        f"them: intervals are guesses until there are {adaptation.MIN_DATASETS}."
    ]


STACK = "Stack"
AVERAGE = "Average"
"""Names of deep's own fits, beside those of ensemblers."""

SIZES: tuple[int | str, ...] = (3, 5, 9)


@dataclass(frozen=True)
class ChainOptions:
    """Which chains to look among; None: deep's own choice.

    Parameters
    ----------
    recipe : {'deep', 'paper'}, optional
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
    sizes : sequence of int or 'all', optional
    ensembler, calibrator : sequence of str, optional
    selector : {'auto', 'exhaustive', 'mrmr', 'mrmr-selection', 'rfe'}, optional
    """

    recipe: str | None = None
    weighting: chain.Weighting | None = None
    sizes: Sequence[int | str] | None = None
    ensembler: Sequence[str] | None = None
    calibrator: Sequence[str] | None = None
    selector: str | None = None

    def __post_init__(self) -> None:
        if "Pool" in (self.ensembler or ()):
            raise InputError(f"`ensembler` must be {STACK!r}. Got 'Pool', its earlier name. A pool is of prompts.")

    @property
    def asked(self) -> bool:
        """Return whether any was given."""
        return any(value is not None for value in vars(self).values())

    @property
    def own(self) -> str | None:
        """Return 'Stack' or 'Average' where one of them was asked for.

        Raises
        ------
        InputError
            Something else was asked for as well.
        """
        own = [name for name in self.ensembler or () if name in (STACK, AVERAGE)]
        if not own:
            return None
        others = [name for name, value in vars(self).items() if value is not None and name != "ensembler"]
        if len(self.ensembler or ()) > 1 or others:
            raise InputError(f"`ensembler` must be {own[0]!r} alone: it has neither voters nor a calibrator to choose.")
        return own[0]


def fit_chosen_chain(
    votes: VoteMatrix,
    options: ChainOptions,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    run: chain.MapLike,
    groups: Texts | None = None,
    searched: "Sequence[chain.Candidate] | None" = None,
) -> Model:
    """Search for the chain with the best inner score among those asked for, and draw up its model."""
    name = check_choice(options.recipe or "deep", chain.RECIPES, "recipe")
    recipe = chain.RECIPES[name]
    tried = ("platt",) if name == "paper" else (*calibration.CALIBRATORS, chain.UNCALIBRATED)
    calibrators = _named(options.calibrator or tried, (*calibration.CALIBRATOR_NAMES, chain.UNCALIBRATED), "calibrator")
    ensemblers = _named(options.ensembler or ensembles.default_ensemblers(), ensembles.ENSEMBLER_NAMES, "ensembler")
    folds = _folds(votes, recipe, groups, random_state)
    training = chain.collapse_folds(votes, folds, options.weighting or recipe.weighting)
    if searched is None:
        searched = _search(training, recipe, options, ensemblers, calibrators, random_state, run)
    else:
        searched = [
            c for c in searched if c.ensembler in ensemblers and (c.calibrator or chain.UNCALIBRATED) in calibrators
        ]
    best = chain.recommend(searched, recipe.criterion)
    kept = chain.KeptCells.of_voters(votes, folds, best.subset.columns, training.weighting)
    in_groups = (
        chain.grouped_note(len(votes.dataset_names), chain.chain_limit(votes)) if folds.group_by == "dataset" else None
    )
    notes = [note for note in (in_groups, None if options.ensembler else ensembles.left_out_note()) if note]
    return chain_model(best, kept, name, provenance, random_state=random_state, run=run, notes=notes)


def _folds(votes: VoteMatrix, recipe: chain.Recipe, groups: Texts | None, random_state: int) -> chain.InnerFolds:
    """Return the inner folds: those of the recipe, or the groups that were given where it leaves out datasets."""
    folds = chain.inner_folds(votes, recipe, random_state=random_state)
    if groups is None or folds.group_by == "fold":
        return folds
    return chain.InnerFolds(chain.grouped(numbered(groups)[1], chain.chain_limit(votes)), folds.group_by)


def _search(
    training: chain.TrainingSet,
    recipe: chain.Recipe,
    options: ChainOptions,
    ensemblers: Sequence[str],
    calibrators: Sequence[str],
    random_state: int,
    run: chain.MapLike,
) -> "list[chain.Candidate]":
    tasks = chain.chain_tasks(
        training,
        recipe,
        sizes=SIZES if options.sizes is None else options.sizes,
        ensemblers=ensemblers,
        calibrators=calibrators,
        selector=options.selector or "auto",
        random_state=random_state,
    )
    return chain.search(tasks, training.cells.patterns, run)


def _named(given: Sequence[str], allowed: Iterable[str], param: str) -> tuple[str, ...]:
    return tuple(check_choice(name, allowed, param) for name in given)
