"""Leave one dataset out: choose, fit and calibrate on the others, then measure on it."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from deep._odds import DECISION
from deep.datasets import ScoreTable
from deep.evaluate import (
    Baseline,
    HoldOut,
    LooResult,
    Row,
    TestCells,
    compare,
    encoder_baselines,
    hold_out,
    null_if_nan,
    vote_baselines,
)
from deep.experiments.loo._pooled import Pooled
from deep.experiments.loo._settings import LooOptions
from deep.experiments.loo._tasks import LooOutcome, Scored, Step, run_tasks
from deep.features import analyze_votes, effective_votes, error_correlation
from deep.model import (
    MAX_FOLDS,
    UNCALIBRATED,
    Candidate,
    ChainTask,
    Recipe,
    chain_tasks,
    grouped_note,
    recommend,
    training_set,
)
from deep.records import VoteMatrix

SCHEMA_VERSION = 1

Progress = Callable[[str, int], Step]
"""Told what is being done and in how many steps; what it returns is called after each step."""


def _silent(_task: str, _steps: int) -> Step:
    return lambda: None


@dataclass
class _Clock:
    """Seconds by stage, and processor seconds by ensembler."""

    started: float = field(default_factory=time.perf_counter)
    stages: dict[str, float] = field(default_factory=dict)
    ensemblers: dict[str, float] = field(default_factory=dict)

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        elapsed = time.perf_counter() - self.started - sum(self.stages.values())
        self.stages[stage] = self.stages.get(stage, 0.0) + elapsed

    def count(self, outcomes: Iterable[LooOutcome]) -> None:
        """Add the processor time of what was fitted."""
        for outcome in outcomes:
            self.ensemblers[outcome.ensembler] = self.ensemblers.get(outcome.ensembler, 0.0) + outcome.seconds

    def seconds(self) -> Row:
        """Return the seconds by stage for `results.json`."""
        return {
            "total": round(sum(self.stages.values()), 3),
            **{stage: round(value, 3) for stage, value in self.stages.items()},
            "ensemblers": {name: round(self.ensemblers[name], 3) for name in sorted(self.ensemblers)},
        }


def leave_one_dataset_out(
    votes: VoteMatrix,
    test: str,
    *,
    settings: LooOptions | None = None,
    scores: ScoreTable | None = None,
    published: Sequence[Row] = (),
    progress: Progress = _silent,
) -> LooResult:
    """Hold one dataset out, learn everything on the others, and measure on it.

    Parameters
    ----------
    votes : VoteMatrix
        All datasets; those trained on are labeled.
    test : str
        The dataset to hold out, one of ``votes.dataset_names``.
    settings : LooOptions, optional
    scores : ScoreTable, optional
        Encoder scores aligned with the rows of `votes`: soft votes of the pool, and baselines.
    published : sequence of dict, optional
        Baseline rows that others have published for `test`, to stand beside ours.
    progress : callable, optional

    Returns
    -------
    LooResult

    Raises
    ------
    InputError
        The votes cannot be split so; see `hold_out`.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.experiments.loo import LooOptions, leave_one_dataset_out
    >>> settings = LooOptions(sizes=[3], ensemblers=["LogisticRegression"], calibrators=["platt"])
    >>> found = leave_one_dataset_out(simulate_votes(0), "aggrefact-xsum", settings=settings)
    >>> found.results["n_test"], found.results["recommended"]["ensembler"]
    (558, 'Pool')
    """
    settings = settings or LooOptions()
    clock = _Clock()
    split = hold_out(votes, test, unit=settings.unit)
    target = TestCells.from_votes(split.test)
    clock.lap("split")
    tasks = [task for recipe in settings.recipes for task in _tasks(split, recipe, settings)]
    clock.lap("select")
    pool, *outcomes = run_tasks(split, scores, tasks, target, settings, progress(split.name, len(tasks) + 1))
    clock.lap("fit")
    clock.count([pool, *outcomes])
    pooled = pool.pooled
    split.warnings.extend(dict.fromkeys(o.warning for o in outcomes if o.warning))
    scored = {recipe.name: _scored_by(recipe.name, outcomes) for recipe in settings.recipes}
    chosen = {name: _chosen(found, name) for name, found in scored.items()}
    baselines = [*vote_baselines(split), *encoder_baselines(split, scores)]
    best = chosen["deep"]["recommended"][0]
    decisions = best.p[target.row_pattern] >= DECISION if pooled is None else pooled.decisions
    comparisons = compare(
        decisions, split.test.labels, baselines, n_boot=settings.n_boot, random_state=settings.random_state
    )
    results = {
        **_header(split, settings),
        "rows": [_row(*pair, name) for name in settings.shown for pair in scored[name]],
        **_picks(scored, chosen),
        **({} if pooled is None else {"recommended": pooled.row(split.test, settings) | {"chosen_on": "training"}}),
        "baselines": [*_baseline_rows(baselines, split, settings), *published],
        "comparisons": comparisons,
    }
    results["notes"] = _notes(results)
    clock.lap("baselines")
    return LooResult(results | {"seconds": clock.seconds()}, _score_table(split, target, scored["deep"], best, pooled))


def _tasks(split: HoldOut, recipe: Recipe, settings: LooOptions) -> list[ChainTask]:
    """Return every chain to be looked for by one recipe."""
    training = training_set(
        split.train,
        recipe,
        weighting=settings.weighting if recipe.name == "deep" else None,
        by_family=settings.unit == "family",
        random_state=settings.random_state,
    )
    return chain_tasks(
        training,
        recipe,
        sizes=settings.sizes,
        ensemblers=settings.ensemblers,
        calibrators=(UNCALIBRATED, *settings.calibrators),
        selector=settings.selector,
        random_state=settings.random_state,
    )


def _scored_by(recipe: str, outcomes: Sequence[LooOutcome]) -> list[Scored]:
    """Return every candidate of one recipe with its metrics on the held-out dataset."""
    return [pair for outcome in outcomes if outcome.recipe == recipe for pair in outcome.scored]


def _chosen(scored: Sequence[Scored], recipe: str) -> dict[str, Scored]:
    """Return the chain or pool that the training data recommend."""
    if recipe == "paper":
        platt = [pair for pair in scored if pair[0].calibrator == "platt"] or scored
        return {"recommended_paper": _best(platt, "accuracy")}
    return {
        "recommended": _best(scored, "log_loss"),
        "recommended_by_accuracy": _best(scored, "balanced_accuracy"),
    }


def _best(scored: Sequence[Scored], by: str) -> Scored:
    best = recommend([candidate for candidate, _ in scored], by)
    return next(pair for pair in scored if pair[0] is best)


def _picks(scored: dict[str, list[Scored]], chosen: dict[str, dict[str, Scored]]) -> Row:
    """Return `recommended` and its kin, each marked with what it was chosen on."""
    picks: Row = dict.fromkeys(("recommended", "recommended_by_accuracy", "recommended_paper"))
    for recipe, found in chosen.items():
        for name, pair in found.items():
            picks[name] = _row(*pair, recipe) | {"chosen_on": "training"}
    rows = [_row(*pair, recipe) for recipe, pairs in scored.items() for pair in pairs]
    known = [row for row in rows if row["balanced_accuracy"] is not None]
    oracle = max(known, key=lambda row: row["balanced_accuracy"], default=None)
    picks["oracle"] = None if oracle is None else oracle | {"chosen_on": "test"}
    return picks


def _row(candidate: Candidate, metrics: Row, recipe: str) -> Row:
    return {
        "recipe": recipe,
        "ensembler": candidate.ensembler,
        "params": candidate.params,
        "n_prompts": len(candidate.subset.columns),
        "selector": candidate.subset.selector,
        "prompts": list(candidate.prompts),
        "calibrator": candidate.calibrator,
        **metrics,
        "inner_log_loss": candidate.inner_log_loss,
        "inner_balanced_accuracy": candidate.inner_balanced_accuracy,
        "inner_accuracy": candidate.inner_accuracy,
    }


def _header(split: HoldOut, settings: LooOptions) -> Row:
    labels = split.test.labels[split.test.labels >= 0]
    names, sizes = np.unique(split.train.datasets.astype(str), return_counts=True)
    analysis = analyze_votes(split.train.votes, split.train.labels, voter_names=split.train.voter_names)
    return {
        "schema_version": SCHEMA_VERSION,
        "test": split.name,
        "settings": {
            "recipe": settings.recipe,
            "weighting": settings.weighting,
            "selector": settings.selector,
            "hold_out": settings.unit,
            "n_bins": settings.n_bins,
            "n_boot": settings.n_boot,
            "seed": settings.random_state,
        },
        "n_test": split.test.shape[0],
        "prior_test": float(labels.mean()) if labels.size else None,
        "train": dict(zip(names.tolist(), sizes.tolist(), strict=True)),
        "dropped": split.dropped,
        "warnings": split.warnings,
        "voters": [
            {"name": name, **{key: null_if_nan(value) for key, value in row.items()}}
            for name, row in analysis.iterrows()
        ],
        "error_correlation": error_correlation(split.train.votes, split.train.labels).round(4).tolist(),
        "effective_votes": null_if_nan(effective_votes(split.train.votes, split.train.labels)),
    }


def _baseline_rows(baselines: Iterable[Baseline], split: HoldOut, settings: LooOptions) -> list[Row]:
    return [
        baseline.row(split.test.labels, n_boot=settings.n_boot, random_state=settings.random_state)
        for baseline in baselines
    ]


def _notes(results: Row) -> list[str]:
    """Return the caveats that a reader should know, in sentences."""
    n_train = len(results["train"])
    notes = [grouped_note(n_train)] if n_train > MAX_FOLDS else []
    against = next((c for c in results["comparisons"] if c["b"].startswith("best_prompt")), None)
    if against is not None and not (against["significant"] and against["difference"] > 0):
        notes.append(
            "No ensemble beats the best single voter beyond chance: recommended minus "
            f"{against['b']} = {100 * against['difference']:+.1f} points of balanced accuracy "
            f"(95 % interval {100 * against['ci'][0]:+.1f} to {100 * against['ci'][1]:+.1f}, "
            f"p = {against['p_bonferroni']:.2g} after Bonferroni, where 0.01 counts)."
        )
    effective, total = results["effective_votes"], len(results["voters"])
    if effective is not None and effective < total / 2:
        notes.append(f"The {total} voters err together: they are worth about {effective:.1f} independent votes.")
    return notes


def _score_table(
    split: HoldOut, target: TestCells, scored: Sequence[Scored], best: Candidate, pooled: Pooled | None
) -> pd.DataFrame:
    """Return the table of `scores.parquet`."""
    columns = _chain_columns(target, scored, best) if pooled is None else _pool_columns(pooled)
    voted_by = list(best.subset.columns) if pooled is None else slice(None)
    labels = pd.array(split.test.labels, dtype="Int8")
    labels[split.test.labels == -1] = pd.NA
    return pd.DataFrame(
        {
            "dataset": split.test.datasets.astype(str),
            "item_id": split.test.example_ids.astype(str),
            "label": labels,
            **columns,
            "n_votes": (split.test.votes[:, voted_by] >= 0).sum(axis=1),
        }
    )


def _chain_columns(target: TestCells, scored: Sequence[Scored], best: Candidate) -> Row:
    """Return P by a single chain, which is at the uniform prior and has no interval."""
    raw = next(c for c, _ in scored if (c.ensembler, c.subset, c.calibrator) == (best.ensembler, best.subset, None))
    p, unknown = best.p[target.row_pattern], np.full(len(target.row_pattern), np.nan)
    uncalibrated = raw.p[target.row_pattern]
    return {"p_consistent": p, "p_low": unknown, "p_high": unknown, "p_uniform": p, "p_uncalibrated": uncalibrated}


def _pool_columns(pooled: Pooled) -> Row:
    """Return P by the pool at the learned prior with its interval, and at the uniform prior."""
    found = pooled.found
    low, high = found.interval()
    p, uniform = found.p_consistent, found.p_uniform
    return {"p_consistent": p, "p_low": low, "p_high": high, "p_uniform": uniform, "p_uncalibrated": uniform}
