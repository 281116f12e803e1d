"""A chain that was asked for: voters, one ensembler, one calibrator, chosen among those named."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deep._checks import Texts, check_choice, numbered
from deep.calibration import ALL_CALIBRATORS, CALIBRATORS
from deep.ensembles import ENSEMBLERS, default_ensemblers, left_out_note
from deep.exceptions import InputError
from deep.model.chain import (
    RECIPES,
    UNCALIBRATED,
    Candidate,
    InnerFolds,
    KeptCells,
    MapLike,
    Recipe,
    TrainingSet,
    Weighting,
    chain_limit,
    chain_tasks,
    collapse,
    grouped,
    grouped_note,
    inner_folds,
    recommend,
    search,
)
from deep.model.file import Model
from deep.model.regimes._chain_model import chain_model
from deep.records import VoteMatrix

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
    weighting: Weighting | None = None
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
    run: MapLike,
    groups: Texts | None = None,
    searched: Sequence[Candidate] | None = None,
) -> Model:
    """Search for the chain with the best inner score among those asked for, and draw up its model."""
    name = check_choice(options.recipe or "deep", RECIPES, "recipe")
    recipe = RECIPES[name]
    tried = ("platt",) if name == "paper" else (*CALIBRATORS, UNCALIBRATED)
    calibrators = _named(options.calibrator or tried, (*ALL_CALIBRATORS, UNCALIBRATED), "calibrator")
    ensemblers = _named(options.ensembler or default_ensemblers(), ENSEMBLERS, "ensembler")
    folds = _folds(votes, recipe, groups, random_state)
    training = collapse(votes, folds, options.weighting or recipe.weighting)
    if searched is None:
        searched = _search(training, recipe, options, ensemblers, calibrators, random_state, run)
    else:
        searched = [c for c in searched if c.ensembler in ensemblers and (c.calibrator or UNCALIBRATED) in calibrators]
    best = recommend(searched, recipe.criterion)
    kept = KeptCells.of_voters(votes, folds, best.subset.columns, training.weighting)
    in_groups = grouped_note(len(votes.dataset_names), chain_limit(votes)) if folds.group_by == "dataset" else None
    notes = [note for note in (in_groups, None if options.ensembler else left_out_note()) if note]
    return chain_model(best, kept, name, provenance, random_state=random_state, run=run, notes=notes)


def _folds(votes: VoteMatrix, recipe: Recipe, groups: Texts | None, random_state: int) -> InnerFolds:
    """Return the inner folds: those of the recipe, or the groups that were given where it leaves out datasets."""
    folds = inner_folds(votes, recipe, random_state=random_state)
    if groups is None or folds.group_by == "fold":
        return folds
    return InnerFolds(grouped(numbered(groups)[1], chain_limit(votes)), folds.group_by)


def _search(
    training: TrainingSet,
    recipe: Recipe,
    options: ChainOptions,
    ensemblers: Sequence[str],
    calibrators: Sequence[str],
    random_state: int,
    run: MapLike,
) -> list[Candidate]:
    tasks = chain_tasks(
        training,
        recipe,
        sizes=SIZES if options.sizes is None else options.sizes,
        ensemblers=ensemblers,
        calibrators=calibrators,
        selector=options.selector or "auto",
        random_state=random_state,
    )
    return search(tasks, training.cells.patterns, run)


def _named(given: Sequence[str], allowed: Iterable[str], param: str) -> tuple[str, ...]:
    return tuple(check_choice(name, allowed, param) for name in given)
