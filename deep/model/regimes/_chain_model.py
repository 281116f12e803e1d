"""A chosen chain fitted on all datasets and without each, as a model."""

from collections.abc import Mapping, Sequence

import numpy as np

from deep._checks import Floats, Votes
from deep._odds import logit
from deep.features import Cells
from deep.model.adaptation import (
    MIN_DATASETS,
    FixedPrior,
    LeftOut,
    LeftOutRows,
    PriorEstimate,
    PriorRule,
    ShiftedPrior,
    learn_misfit,
    learn_prior,
)
from deep.model.chain import (
    Candidate,
    Chain,
    ChainSpec,
    KeptCells,
    MapLike,
    fit_chain,
    predict_left_out,
    task_seed,
)
from deep.model.file import MAX_TABLE_VOTERS, ChainScorer, Model, Table, look_up, pattern_grid, voters_of
from deep.model.regimes._report import report_of
from deep.model.score import Blend, Part

CURVE = np.linspace(0.0, 1.0, 51)
"""Where the calibrator's map is written down for people to see."""

UNMOVED = "The paper's recipe estimates no prior: P stands as its calibrator gives it."


def chain_model(
    best: Candidate,
    kept: KeptCells,
    recipe: str,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    run: MapLike = map,
    notes: Sequence[str] = (),
) -> Model:
    """Fit a chosen chain on all datasets and without each, and draw up its model."""
    seed = task_seed(best.ensembler, best.subset.columns, recipe, random_state)
    spec = ChainSpec(recipe, best.ensembler, best.params, best.calibrator, seed)
    chain, cells = fit_chain(spec, kept.training()), kept.by_dataset
    few = len(best.prompts) <= MAX_TABLE_VOTERS
    grid = pattern_grid(len(best.prompts)) if few else cells.patterns
    scorer = ChainScorer(spec, kept, Table(chain.predict(grid), chain.uncalibrated(grid)) if few else None)
    points = _left_out(spec, kept, grid, run, table=few) if kept.n_units >= MIN_DATASETS else []
    rule, shifts = _rule(points, cells, scorer, recipe)
    rows = [
        LeftOutRows(one.score + shift, one.ones, one.zeros, np.arange(len(one.score)))
        for one, shift in zip(points, shifts, strict=True)
    ]
    merged = {n: LeftOut.from_rows(r.log_odds, r.ones, r.zeros) for n, r in zip(cells.groups, rows, strict=False)}
    return Model(
        voters=voters_of(best.prompts, provenance),
        score_names=(),
        method="chain",
        blend=Blend((Part("chain", scorer),)),
        prior_rule=rule,
        misfit=learn_misfit(rows),
        contexts=_contexts(rule),
        cells=cells,
        left_out=merged,
        report=report_of(_chosen(best, chain), cells, merged, shifts, provenance, notes=[*notes, *_few_note(kept)]),
    )


def _left_out(spec: ChainSpec, kept: KeptCells, grid: Votes, run: MapLike, *, table: bool) -> list[LeftOut]:
    """Return each dataset's log-odds by the chain fitted without it; `table`: `grid` holds every pattern."""
    cells = kept.by_dataset
    by_unit = predict_left_out(spec, kept, grid, run)
    held = np.column_stack([look_up(p, cells.patterns) for p in by_unit.T]) if table else by_unit
    z = logit(held[:, kept.units])
    counts = cells.counts.astype(float)
    return [LeftOut(z[:, d], counts[:, d, 1], counts[:, d, 0]) for d in range(len(cells.groups))]


def _rule(points: Sequence[LeftOut], cells: Cells, scorer: ChainScorer, recipe: str) -> tuple[PriorRule, list[float]]:
    """Return how the prior of a new dataset is told, and the log-odds of those of the training datasets."""
    if recipe == "paper":
        return FixedPrior(PriorEstimate(0.5, 0.5, 0.5, UNMOVED)), [0.0] * len(points)
    if points:
        rule = learn_prior([[one] for one in points])
        return rule, rule.left_out_.tolist()
    z, counts = logit(scorer.predict(cells.patterns)), cells.counts.astype(float)
    seen = [LeftOut(z, counts[:, d, 1], counts[:, d, 0]) for d in range(len(cells.groups))]
    # The chain has seen these datasets, so that nothing is learned from its mean P: only their priors count.
    return ShiftedPrior().fit([[one.context] for one in seen], [one.prior for one in seen]), []


def _contexts(rule: PriorRule) -> Floats:
    statistic = getattr(rule, "statistic_", None)
    return np.zeros(1) if statistic is None else np.asarray(statistic.mean(axis=0))


def _chosen(best: Candidate, chain: Chain) -> dict[str, object]:
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
        "calibrator_map": _calibrator_map(chain),
    }


def _calibrator_map(chain: Chain) -> dict[str, object] | None:
    """Return the calibrator's fitted numbers and its curve; None where there is none."""
    if chain.calibrator is None:
        return None
    fitted = {
        name: np.asarray(value).tolist()
        for name, value in vars(chain.calibrator).items()
        if name.endswith("_") and isinstance(value, float | np.ndarray)
    }
    return {"fitted": fitted, "from": CURVE.tolist(), "to": chain.calibrator.transform(CURVE).tolist()}


def _few_note(kept: KeptCells) -> list[str]:
    if kept.n_units >= MIN_DATASETS:
        return []
    return [
        f"{kept.n_units} training dataset(s) without common documents do not show how far a new one may lie from "
        f"them: intervals are guesses until there are {MIN_DATASETS}."
    ]
