"""Choose and fit the best single chain, and draw up its model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, check_both_classes, check_choice
from deep.calibration import CALIBRATORS, ece_noise_floor, evaluate
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.model.chain import (
    RECIPES,
    Candidate,
    Chain,
    ChainSpec,
    KeptCells,
    Subset,
    TrainingSet,
    Weighting,
    choose_subsets,
    fit_candidates,
    fit_chain,
    recommend,
    task_seed,
    training_set,
)
from deep.model.file import MAX_TABLE_VOTERS, PRIOR, Model, Table, Voter, library_versions, look_up, pattern_grid
from deep.model.target import MIN_DATASETS, Adaptation, Transfer, interval, learn_adaptation, learn_transfer
from deep.records import VoteMatrix

__all__ = ["UNCALIBRATED", "fit"]

UNCALIBRATED = "none"
"""In place of a calibrator's name: the ensembler's own probabilities."""

N_BINS = 8

CURVE = np.linspace(0.0, 1.0, 51)
"""Where the calibrator's map is written down for people to see."""

Run = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Like the built-in `map`: results in the order of the tasks, wherever they are run."""


@dataclass(frozen=True)
class _Task:
    """One ensembler on one subset of the voters."""

    ensembler: str
    subset: Subset


def fit(
    votes: VoteMatrix,
    *,
    recipe: str = "deep",
    weighting: Weighting | None = None,
    sizes: Sequence[int] = (3, 5, 9),
    ensembler: str | Sequence[str] | None = None,
    calibrator: str | Sequence[str] | None = None,
    selector: str = "auto",
    random_state: int = 0,
    provenance: Mapping[str, Any] | None = None,
    run: Run = map,
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
    sizes : sequence of int, default=(3, 5, 9)
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
    labeled = _labeled(votes)
    ensemblers = _named(ensembler, ENSEMBLERS, "ensembler")
    calibrators = _named(calibrator, (*CALIBRATORS, UNCALIBRATED), "calibrator")
    if calibrator is None and recipe == "paper":
        calibrators = ("platt",)
    check_choice(recipe, RECIPES, "recipe")
    training = training_set(labeled, RECIPES[recipe], weighting=weighting, random_state=random_state)
    tasks = _tasks(training, ensemblers, sizes, selector, recipe)
    step = partial(_candidates, training=training, calibrators=calibrators, recipe=recipe, random_state=random_state)
    best = _best(list(run(step, tasks)), tasks, recipe)
    columns = best.subset.columns
    seed = task_seed(best.ensembler, columns, recipe, random_state)
    spec = ChainSpec(recipe, best.ensembler, best.params, best.calibrator, seed)
    kept = KeptCells.from_rows(labeled, training, columns, random_state)
    return _model(spec, kept, best, dict(provenance or {}), run)


def _labeled(votes: VoteMatrix) -> VoteMatrix:
    known = votes.labels >= 0
    if not known.any():
        raise InputError("`votes` must have labeled rows to learn from. Got none.")
    labeled = votes.rows(known)
    check_both_classes(labeled.labels, labeled.datasets)
    return labeled


def _named(given: str | Sequence[str] | None, allowed: Iterable[str], param: str) -> tuple[str, ...]:
    names = tuple(allowed) if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        check_choice(name, allowed, param)
    return names or tuple(allowed)


def _tasks(
    training: TrainingSet, ensemblers: Sequence[str], sizes: Sequence[int], selector: str, recipe: str
) -> list[_Task]:
    n_voters = len(training.cells.voter_names)
    wrong = next((size for size in sizes if size < 1), None)
    if wrong is not None or not sizes:
        raise InputError(f"`sizes` must hold whole numbers of 1 or more. Got {list(sizes)!r}.")
    distinct = list(dict.fromkeys(min(size, n_voters) for size in sizes))
    subsets = choose_subsets(training, distinct, selector=selector, criterion=RECIPES[recipe].subset_criterion)
    return [
        _Task(name, subset)
        for subset in subsets
        for name in ensemblers
        if len(subset.columns) >= ENSEMBLERS[name].min_voters
    ]


def _candidates(
    task: _Task, *, training: TrainingSet, calibrators: Sequence[str], recipe: str, random_state: int
) -> list[Candidate] | str:
    """Return the candidates among which to choose, or why there are none."""
    try:
        found = fit_candidates(
            task.ensembler,
            task.subset,
            training,
            training.cells.patterns,
            calibrators=[name for name in calibrators if name != UNCALIBRATED],
            recipe=RECIPES[recipe],
            random_state=task_seed(task.ensembler, task.subset.columns, recipe, random_state),
        )
    except InputError as error:
        return f"{task.ensembler} on {len(task.subset.columns)} voters: {error}"
    return [candidate for candidate in found if (candidate.calibrator or UNCALIBRATED) in calibrators]


def _best(found: Sequence[list[Candidate] | str], tasks: Sequence[_Task], recipe: str) -> Candidate:
    candidates = [candidate for some in found if isinstance(some, list) for candidate in some]
    if not candidates:
        reasons = " ".join(some for some in found if isinstance(some, str)) or f"{len(tasks)} can."
        raise InputError(f"`ensembler` must name one that can be fitted on these votes. {reasons}")
    return recommend(candidates, RECIPES[recipe].criterion)


def _model(spec: ChainSpec, kept: KeptCells, best: Candidate, provenance: dict[str, Any], run: Run) -> Model:
    names = kept.joint.voter_names
    chain = fit_chain(spec, kept.training())
    grid = pattern_grid(len(names)) if len(names) <= MAX_TABLE_VOTERS else None
    patterns = kept.joint.patterns if grid is None else grid
    left_out = _left_out(spec, kept, patterns, run)
    transfer: Transfer | None = None
    adaptation: Adaptation | None = None
    by_dataset: dict[str, dict[str, float]] = {}
    table = None if grid is None else Table(chain.predict(grid), chain.uncalibrated(grid))
    if left_out is not None:
        transfer, adaptation, by_dataset = _on_left_out(left_out, kept, in_table=table is not None)
        if table is not None:
            table = replace(table, **dict(zip(("low", "high"), interval(table.p, left_out, transfer), strict=True)))
    details = provenance.pop("voters", {})
    voters = tuple(Voter(name, details.get(name, {})) for name in names)
    report = _report(best, chain, kept, by_dataset, provenance)
    return Model(voters, spec, kept, transfer, adaptation, table, report)


def _left_out(spec: ChainSpec, kept: KeptCells, patterns: npt.NDArray[np.int8], run: Run) -> Floats | None:
    """Return P of each pattern by the chain without each unit; None where there are too few."""
    if kept.n_units < MIN_DATASETS:
        return None
    step = partial(_predict_without, spec=spec, kept=kept, patterns=patterns)
    return np.column_stack(list(run(step, range(kept.n_units))))


def _predict_without(unit: int, *, spec: ChainSpec, kept: KeptCells, patterns: npt.NDArray[np.int8]) -> Floats:
    return fit_chain(spec, kept.training(without=unit)).predict(patterns)


def _on_left_out(
    left_out: Floats, kept: KeptCells, *, in_table: bool
) -> tuple[Transfer, Adaptation, dict[str, dict[str, float]]]:
    """Return what is learned from each dataset being left out, and how well the fits without it did there."""
    cells = kept.by_dataset
    p = np.column_stack([look_up(column, cells.patterns) for column in left_out.T]) if in_table else left_out
    p = p[:, kept.units]
    transfer = learn_transfer(p, cells.counts, cells.groups, kept.n_units)
    adaptation = learn_adaptation(p, cells.counts, cells.groups)
    return transfer, adaptation, {name: _metrics(p[:, d], cells.counts[:, d]) for d, name in enumerate(cells.groups)}


def _metrics(p: Floats, counts: npt.NDArray[np.int64]) -> dict[str, float]:
    pattern, label = np.nonzero(counts)
    n = counts[pattern, label]
    found = evaluate(label, p[pattern], sample_weight=n, n_bins=N_BINS, n_draws=0)
    floor = ece_noise_floor(p[pattern], n_bins=N_BINS, sample_weight=n, n_draws=0).mean
    return {**{name: found[name] for name in ("balanced_accuracy", "auroc", "log_loss", "ece")}, "ece_floor": floor}


def _report(
    best: Candidate, chain: Chain, kept: KeptCells, by_dataset: Mapping[str, Any], provenance: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "selector": best.subset.selector,
        "calibrator_map": _calibrator_map(chain),
        "prior": PRIOR,
        "inner": {
            "log_loss": best.inner_log_loss,
            "balanced_accuracy": best.inner_balanced_accuracy,
            "accuracy": best.inner_accuracy,
        },
        "left_out": {
            "datasets": by_dataset,
            "mean": {
                name: float(np.mean([row[name] for row in by_dataset.values()]))
                for name in next(iter(by_dataset.values()), {})
            },
        },
        "notes": _notes(kept),
        "training_datasets": _datasets(kept, provenance.get("licences", {})),
        "versions": library_versions(),
        "provenance": {name: value for name, value in provenance.items() if name != "licences"},
    }


def _notes(kept: KeptCells) -> list[str]:
    if kept.n_units >= MIN_DATASETS:
        return []
    return [
        f"There are no intervals: {kept.n_units} training dataset(s) without common documents do not show how far a "
        f"new one may lie from them; {MIN_DATASETS} are needed."
    ]


def _datasets(kept: KeptCells, licences: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    sizes = kept.by_dataset.counts.sum(axis=0)
    return {
        name: {
            "n": int(size.sum()),
            "n_consistent": int(size[1]),
            "prior": float(size[1] / size.sum()),
            "licence": licences.get(name),
        }
        for name, size in zip(kept.by_dataset.groups, sizes, strict=True)
    }


def _calibrator_map(chain: Chain) -> dict[str, Any] | None:
    """Return the calibrator's fitted numbers and its curve; None where there is none."""
    if chain.calibrator is None:
        return None
    fitted = {
        name: np.asarray(value).tolist()
        for name, value in vars(chain.calibrator).items()
        if name.endswith("_") and isinstance(value, float | np.ndarray)
    }
    return {"fitted": fitted, "from": CURVE.tolist(), "to": chain.calibrator.transform(CURVE).tolist()}
