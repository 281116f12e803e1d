"""A chain that was asked for: voters, one ensembler, one calibrator, chosen among those named."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from deep import calibration, ensembles
from deep._util.checks import Floats, Texts, check_choice, numbered
from deep._util.odds import logit
from deep.exceptions import InputError
from deep.model import adaptation, chain
from deep.model.file import MAX_TABLE_VOTERS, ChainScorer, Model, Table, look_up, pattern_grid
from deep.model.linear import Rows
from deep.model.regimes._finish import finish, mean_contexts
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
    patterns = pattern_grid(len(best.prompts)) if few else cells.patterns
    table = Table(fitted.predict(patterns), fitted.uncalibrated(patterns)) if few else None
    scorer = ChainScorer(spec, kept, table)
    counts = cells.counts.astype(float).swapaxes(0, 1)

    # The log-odds of each dataset by a chain fitted without it; where datasets are few, by the one fitted on all.
    enough = kept.n_units >= adaptation.MIN_DATASETS
    log_odds: Iterable[Floats]
    if enough:
        by_unit = chain.predict_left_out(spec, kept, patterns, run)
        held = np.column_stack([look_up(p, cells.patterns) for p in by_unit.T]) if few else by_unit
        log_odds = logit(held[:, kept.units]).T
    else:
        log_odds = repeat(logit(scorer.predict(cells.patterns)))
    points = [adaptation.LeftOut(z, n[:, 1], n[:, 0]) for z, n in zip(log_odds, counts, strict=False)]

    # The prior of a new dataset, and of each training dataset from the others.
    priors: list[adaptation.PriorEstimate] = []
    if recipe == "paper":
        even = adaptation.PriorEstimate(0.5, 0.5, 0.5, UNMOVED)
        rule: adaptation.PriorRule = adaptation.FixedPrior(even)
        priors = [even] * len(points) if enough else []
    else:
        profiles = [adaptation.profile_of(one.score, one.ones + one.zeros) for one in points]
        learned = rule = adaptation.LearnedPrior().fit(profiles, [one.prior for one in points])
        priors = learned.left_out(profiles) if enough else []
    moved = [
        adaptation.LeftOutRows(prior.line(one.score), one.ones, one.zeros, np.arange(len(one.score)))
        for one, prior in zip(points, priors, strict=False)
    ]

    blend, rows = Blend((Part("chain", scorer),)), Rows.from_arrays(cells.patterns)
    return finish(
        blend,
        rule,
        adaptation.learn_misfit(moved),
        mean_contexts(blend, [replace(rows, weights=size) for size in counts.sum(axis=-1)]),
        {name: one.merged() for name, one in zip(cells.groups, moved, strict=False)},
        [prior.threshold for prior in priors],
        cells,
        _chosen(best, fitted),
        method="chain",
        provenance=provenance,
        notes=[*notes, *([] if enough else [FEW_DATASETS.format(kept.n_units)])],
    )


FEW_DATASETS = (
    "{} training dataset(s) without common documents do not show how far a new one may lie from them: intervals are "
    f"guesses until there are {adaptation.MIN_DATASETS}."
)


def _chosen(best: "chain.Candidate", fitted: "chain.Chain") -> dict[str, object]:
    """Return the parts of a chain, the scores by which they were chosen, and the map of its calibrator."""
    curve = None
    if fitted.calibrator is not None:
        numbers = {
            name: np.asarray(value).tolist()
            for name, value in vars(fitted.calibrator).items()
            if name.endswith("_") and isinstance(value, float | np.ndarray)
        }
        curve = {"fitted": numbers, "from": CURVE.tolist(), "to": fitted.calibrator.transform(CURVE).tolist()}
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
    folds = chain.inner_folds(votes, recipe, random_state=random_state)
    if groups is not None and folds.group_by == "dataset":
        folds = chain.InnerFolds(chain.grouped(numbered(groups)[1], chain.chain_limit(votes)), folds.group_by)
    training = chain.collapse_folds(votes, folds, options.weighting or recipe.weighting)
    if searched is None:
        tasks = chain.chain_tasks(
            training,
            recipe,
            sizes=SIZES if options.sizes is None else options.sizes,
            ensemblers=ensemblers,
            calibrators=calibrators,
            selector=options.selector or "auto",
            random_state=random_state,
        )
        searched = chain.search(tasks, training.cells.patterns, run)
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


def _named(given: Sequence[str], allowed: Iterable[str], param: str) -> tuple[str, ...]:
    return tuple(check_choice(name, allowed, param) for name in given)
