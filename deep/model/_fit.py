"""Choose and fit the best single chain, and draw up its model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from deep._checks import check_both_classes, check_choice, check_some_votes
from deep.calibration import CALIBRATORS
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.model._report import report_of
from deep.model.chain import (
    RECIPES,
    UNCALIBRATED,
    Candidate,
    ChainSpec,
    KeptCells,
    MapLike,
    Weighting,
    chain_tasks,
    collapse,
    fit_chain,
    inner_folds,
    predict_left_out,
    recommend,
    search,
    task_seed,
)
from deep.model.file import MAX_TABLE_VOTERS, Model, Table, look_up, pattern_grid, voters_of
from deep.model.target import MIN_DATASETS, interval, learn_adaptation, learn_transfer
from deep.records import VoteMatrix


def fit(
    votes: VoteMatrix,
    *,
    recipe: str = "deep",
    weighting: Weighting | None = None,
    sizes: Sequence[int | str] = (3, 5, 9),
    ensembler: str | Sequence[str] | None = None,
    calibrator: str | Sequence[str] | None = None,
    selector: str = "auto",
    random_state: int = 0,
    provenance: Mapping[str, object] | None = None,
    run: MapLike = map,
) -> Model:
    """Learn the best single chain, or the best of those named, from all labeled rows.

    The pool that `loo` recommends looks at a whole target dataset at once, and is no table that a file could hold.

    Parameters
    ----------
    votes : VoteMatrix
        Rows without a label are left out.
    recipe : {'deep', 'paper'}, default='deep'
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        Default: the recipe's.
    sizes : sequence of int or 'all', default=(3, 5, 9)
        Numbers of voters to try; one above the number of voters takes them all.
    ensembler : str or sequence of str, optional
        Keys of `ENSEMBLERS`; default: all.
    calibrator : str or sequence of str, optional
        Keys of `CALIBRATORS`, or 'none'. Default: all and 'none'; for recipe 'paper' Platt.
    selector : {'auto', 'exhaustive', 'mrmr', 'rfe'}, default='auto'
    random_state : int, default=0
    provenance : mapping, optional
        Goes into the model as given: `voters` by name, `licences` by dataset, and whatever else is known.
    run : callable, optional
        Like `map`; another one may spread the tasks over processes. The result does not depend on it.

    Returns
    -------
    Model
        Chosen by the recipe's inner score alone, on the training data.

    Raises
    ------
    InputError
        No row is labeled, a dataset has one class only, a name is unknown, or no ensembler can be fitted.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> model.voter_names, model.spec.calibrator
    (('prompt-1/gpt-4', 'prompt-2/gpt-4', 'prompt-4/gpt-4'), 'platt')
    """
    ensemblers = _named(ensembler, ENSEMBLERS, "ensembler")
    calibrators = _named(calibrator, (*CALIBRATORS, UNCALIBRATED), "calibrator")
    if calibrator is None and recipe == "paper":
        calibrators = ("platt",)
    chosen = RECIPES[check_choice(recipe, RECIPES, "recipe")]
    labeled = _labeled(votes)
    folds = inner_folds(labeled, chosen, random_state=random_state)
    training = collapse(labeled, folds, weighting or chosen.weighting)
    tasks = chain_tasks(
        training,
        chosen,
        sizes=sizes,
        ensemblers=ensemblers,
        calibrators=calibrators,
        selector=selector,
        random_state=random_state,
    )
    best = recommend(search(tasks, training.cells.patterns, run), chosen.criterion)
    kept = KeptCells.of_voters(labeled, folds, best.subset.columns, training.weighting)
    seed = task_seed(best.ensembler, best.subset.columns, recipe, random_state)
    spec = ChainSpec(recipe, best.ensembler, best.params, best.calibrator, seed)
    return _model(spec, kept, best, provenance or {}, run)


def _labeled(votes: VoteMatrix) -> VoteMatrix:
    """Return the rows to learn from; every later step takes them as checked."""
    known = votes.labels >= 0
    if not known.any():
        raise InputError("`votes` must have labeled rows to learn from. Got none.")
    check_both_classes(votes.labels[known], votes.datasets[known])
    check_some_votes(votes.votes[known])
    return votes.rows(known)


def _named(given: str | Sequence[str] | None, allowed: Iterable[str], param: str) -> tuple[str, ...]:
    names = tuple(allowed) if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        check_choice(name, allowed, param)
    return names or tuple(allowed)


def _model(spec: ChainSpec, kept: KeptCells, best: Candidate, provenance: Mapping[str, object], run: MapLike) -> Model:
    """Fit the chosen chain on all datasets and without each, and draw up its model."""
    chain, cells = fit_chain(spec, kept.training()), kept.by_dataset
    grid = pattern_grid(len(best.prompts)) if len(best.prompts) <= MAX_TABLE_VOTERS else None
    table = None if grid is None else Table(chain.predict(grid), chain.uncalibrated(grid))
    transfer, adaptation, held = None, None, None
    if kept.n_units >= MIN_DATASETS:
        left_out = predict_left_out(spec, kept, cells.patterns if grid is None else grid, run)
        held = left_out if grid is None else np.column_stack([look_up(p, cells.patterns) for p in left_out.T])
        held = held[:, kept.units]
        transfer = learn_transfer(held, cells.counts, cells.groups, kept.n_units)
        adaptation = learn_adaptation(held, cells.counts, cells.groups)
        if table is not None:
            low, high = interval(table.p, left_out, transfer)
            table = replace(table, low=low, high=high)
    report = report_of(best, chain, cells, held, provenance, n_units=kept.n_units)
    return Model(voters_of(best.prompts, provenance), spec, kept, transfer, adaptation, table, report)
