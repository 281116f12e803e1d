"""Leave one dataset out: choose, fit and calibrate on the others, then measure on it."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from deep import model
from deep._util.checks import Texts, factorize
from deep._util.names import resolve_dataset
from deep.calibration import NETCAL_CLASSES
from deep.console import SIMULATED, in_processes
from deep.datasets import ScoreTable, VotesGiven, as_votes
from deep.ensembles import draws_note, missing_libraries_note
from deep.evaluate import HELD_OUT_FOLDS, HoldOut, Row, decision_metrics, hold_out, json_value
from deep.experiments.loo import _rivals
from deep.experiments.loo._command import LooOptions
from deep.experiments.loo._rivals import LooOutcome, ScoredChain, StepCallback, chain_table, run_tasks
from deep.experiments.loo._run_tables import LooResult, methods, published_rows
from deep.experiments.loo._show import LEARNED_PRIOR
from deep.features import analyze_votes, distinct_patterns, effective_votes, error_correlation
from deep.model.stack import VOTE_MEMBERS
from deep.records import ABSTAIN, VoteMatrix

# The version of `results.json`; docs/results-schema.md describes it.
SCHEMA_VERSION = 1

# Told what is being done and in how many steps; what it returns is called after each step.
StartSteps = Callable[[str, int], StepCallback]


@dataclass
class _StageClock:
    """Seconds by stage, and processor seconds by ensembler."""

    started: float = field(default_factory=time.perf_counter)
    stages: dict[str, float] = field(default_factory=partial(defaultdict, float))
    ensemblers: dict[str, float] = field(default_factory=partial(defaultdict, float))

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        self.stages[stage] += time.perf_counter() - self.started - sum(self.stages.values())

    def seconds(self, parts: int) -> Row:
        """Return one of so many equal parts of the seconds by stage for `results.json`."""
        return {
            "total": round(sum(self.stages.values()) / parts, 3),
            **{stage: round(value / parts, 3) for stage, value in self.stages.items()},
            "ensemblers": {name: round(self.ensemblers[name] / parts, 3) for name in sorted(self.ensemblers)},
        }


def leave_one_dataset_out(
    votes: VoteMatrix,
    test: str,
    *,
    settings: LooOptions | None = None,
    scores: ScoreTable | None = None,
    published: Sequence[Row] = (),
    fits: model.Fits | None = None,
    n_datasets: int = 1,
    progress: StartSteps = lambda _task, _steps: lambda: None,
) -> LooResult:
    """Hold one dataset out, learn everything on the others, and measure on it.

    The recommendation is :func:`deep.model.fit` on the other datasets, and what its model says of the one held out.

    Parameters
    ----------
    votes : VoteMatrix
        All datasets; those trained on are labeled.
    test : str
        The dataset to hold out, one of ``votes.dataset_names``.
    settings : LooOptions, optional
        Default: those of ``deep loo``.
    scores : ScoreTable, optional
        Encoder scores aligned with the rows of `votes`: soft votes of the stack, and baselines.
    published : sequence of dict, optional
        Baseline rows that others have published for `test`, to stand beside ours.
    fits : mapping, optional
        Members that were fitted without `test` already, as in :func:`deep.model.fit`.
    n_datasets : int, default=1
        How many datasets are held out in turn; the tests are corrected for them.
    progress : callable, optional
        Called with the dataset's name and a number of steps; what it returns is called after each step.

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
    >>> settings = LooOptions(sizes=[3], ensembler=["LogisticRegression"], calibrator=["platt"])
    >>> result = leave_one_dataset_out(simulate_votes(0), "aggrefact-xsum", settings=settings)
    >>> result.results["n_test"], result.results["recommended"]["ensembler"]
    (558, 'LogisticRegression')
    """
    return leave_datasets_out(
        votes,
        [test],
        settings=settings or LooOptions(),
        scores=scores,
        published={test: published},
        fits=fits,
        n_datasets=n_datasets,
        progress=progress,
    )[0]


def leave_datasets_out(
    votes: VoteMatrix,
    tests: Sequence[str],
    *,
    settings: LooOptions,
    scores: ScoreTable | None,
    published: Mapping[str, Sequence[Row]],
    fits: model.Fits | None,
    prompt_fits: model.Fits | None = None,
    n_datasets: int,
    progress: StartSteps,
) -> list[LooResult]:
    """Hold datasets out together, learn everything on the others, and measure on each of them.

    Parameters
    ----------
    votes, settings, scores, published, fits, n_datasets, progress
        As in :func:`leave_one_dataset_out`; `published` by dataset.
    tests : sequence of str
        Names of the datasets held out.
    prompt_fits : mapping, optional
        As `fits`, of members fitted to the votes alone, where there are scores.

    Returns
    -------
    list of LooResult
        Of each dataset, its seconds an equal share of those of all.
    """
    clock = _StageClock()
    splits = [hold_out(votes, test, unit=settings.unit, besides=tests) for test in tests]
    split, targets = splits[0], [_rivals.TestCells.from_votes(one.test) for one in splits]
    by_family, seed = settings.unit == "family", settings.random_state
    groups = model.training_groups(split.train, by_family=by_family, random_state=seed)
    clock.lap("split")
    tasks = [task for recipe in settings.shown for task in _chain_tasks(split, recipe, settings)]
    clock.lap("select")
    title = split.name + (f" and {len(tests) - 1} others" if len(tests) > 1 else "")
    outcomes = run_tasks(tasks, targets, settings, progress(title, max(1, len(tasks))))
    clock.lap("chains")
    for outcome in outcomes[0]:
        clock.ensemblers[outcome.ensembler] += outcome.seconds
    fits = member_fits(split, scores, settings, groups) if fits is None else fits
    # The chains of the table are those that `fit` would search, so that they are not fitted twice.
    searched = [candidate for candidate, _ in _chains_of_recipe(settings.own_recipe, outcomes[0])] or None
    # The groups of datasets are those that `fit` finds itself; it knows no families.
    mapper = partial(in_processes, n_jobs=settings.n_jobs)
    work = model.SharedWork(groups if by_family else None, fits, searched, mapper)
    fitted = model.fit_with_options(_rivals.with_scores(split, scores)[0], settings, work, random_state=seed)
    clock.lap("fit")
    result = []
    for one, target, of_target in zip(splits, targets, outcomes, strict=True):
        one.warnings.extend(dict.fromkeys(o.warning for o in of_target if o.warning))
        scored = {recipe.name: _chains_of_recipe(recipe.name, of_target) for recipe in settings.shown}
        by_model = _rivals.score_held_out(fitted, one, scores)
        recommended = recommended_row(fitted, by_model, one.test, settings)
        weighting, context = settings.rivals_weighting, _rivals.context_baseline(one, scores, groups=groups, fits=fits)
        baselines = [
            *_rivals.vote_baselines(one, weighting),
            *([] if context is None else [context]),
            *_rivals.encoder_baselines(one, scores, weighting),
        ]
        against = {"n_boot": settings.n_boot, "random_state": settings.random_state, "n_datasets": n_datasets}
        results = {
            **_results_header(one, settings),
            **_chain_rows(scored, recommended, settings),
            "baselines": [
                *(baseline.row(one.test.labels, **settings.resampling) for baseline in baselines),
                *published.get(one.name, ()),
            ],
            "comparisons": _rivals.compare(by_model.decisions, one.test.labels, baselines, **against),
        }
        if scores is not None:
            results["parts"] = _rivals.compare_parts(
                one, scores, groups=groups, fits=fits, prompt_fits=prompt_fits, **settings.resampling
            )
        results["notes"] = _reader_notes(results, one, settings, len(tests) - 1)
        chains = chain_table(one, target, scored) if settings.all_chains else None
        result.append(LooResult(results, _score_table(one, by_model), chains))
    clock.lap("baselines")
    return [replace(one, results=one.results | {"seconds": clock.seconds(len(tests))}) for one in result]


def _chain_tasks(split: HoldOut, recipe: model.Recipe, settings: LooOptions) -> list[model.ChainTask]:
    """Return every chain to be looked for by one recipe."""
    training = model.training_set(
        split.train,
        recipe,
        weighting=settings.weighting if recipe.name == settings.own_recipe else None,
        by_family=settings.unit == "family",
        random_state=settings.random_state,
    )
    tasks = model.chain_tasks(
        training,
        recipe,
        sizes=settings.sizes or model.DEFAULT_SUBSET_SIZES,
        ensemblers=settings.table_ensemblers(recipe.name),
        calibrators=settings.table_calibrators,
        selector=settings.selector or "auto",
        random_state=settings.random_state,
    )
    # Those on the fewest voters try netcal's calibrators too, where they are wanted: netcal takes no weights.
    is_wanted = settings.netcal and settings.calibrator is None and training.weighting == "uniform"
    least = min(len(task.subset.columns) for task in tasks) if is_wanted and tasks else 0
    return [
        replace(task, calibrators=(*task.calibrators, *NETCAL_CLASSES)) if len(task.subset.columns) == least else task
        for task in tasks
    ]


def _chains_of_recipe(recipe: str, outcomes: Sequence[LooOutcome]) -> list[ScoredChain]:
    """Return every candidate of one recipe with its metrics on the held-out dataset."""
    return [pair for outcome in outcomes if outcome.recipe == recipe for pair in outcome.scored]


def _best_chain_row(recipe: str, scored: list[ScoredChain], by: str, calibrators: Sequence[str] | None) -> Row:
    """Return the best chain that has one of the calibrators asked for; of all where none is, or where no chain has."""
    some = [pair for pair in scored if (pair[0].calibrator or model.UNCALIBRATED) in (calibrators or ())] or scored
    best = model.recommend([candidate for candidate, _ in some], by)
    return _chain_row(*next(pair for pair in some if pair[0] is best), recipe) | {"chosen_on": "training"}


def _chain_rows(scored: dict[str, list[ScoredChain]], recommended: Row, settings: LooOptions) -> Row:
    """Return the rows of the table, `recommended` and its kin, each of them marked with what it was chosen on.

    Without a chain the row of the stack or the average is the table.
    """
    rows = [_chain_row(*pair, recipe) for recipe, pairs in scored.items() for pair in pairs] or [recommended]
    results = [row for row in rows if row["balanced_accuracy"] is not None]
    oracle = max(results, key=lambda row: row["balanced_accuracy"], default=None)
    picks: Row = dict.fromkeys(("recommended_by_accuracy", "recommended_chain", "recommended_paper"))
    if chains := scored.get("deep"):
        picks["recommended_chain"] = _best_chain_row("deep", chains, "log_loss", settings.calibrator)
        picks["recommended_by_accuracy"] = _best_chain_row("deep", chains, "balanced_accuracy", settings.calibrator)
    if chains := scored.get("paper"):
        # The paper's grid search maximises accuracy. Its choice by test labels nobody can make beforehand.
        picks["recommended_paper"] = _best_chain_row("paper", chains, "accuracy", settings.calibrator or ("platt",))
    return {
        "rows": rows,
        "recommended": recommended | {"chosen_on": "training"},
        **picks,
        "oracle": None if oracle is None else oracle | {"chosen_on": "test"},
    }


def _chain_row(candidate: model.ChainCandidate, metrics: Row, recipe: str) -> Row:
    """Return the entry of `results.json` of one chain."""
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


def recommended_row(fitted: model.Model, scores: model.Scores, test: VoteMatrix, options: LooOptions) -> Row:
    """Return the entry of `results.json` of the model fitted on the training data, by its scores of the held-out rows.

    Parameters
    ----------
    fitted : Model
        Fitted on the training rows.
    scores : Scores
        Of the held-out rows, in their order.
    test : VoteMatrix
        The held-out rows, with labels where there are any.
    options : LooOptions
        Its recipe, and the bins, resamples and seed of the metrics are used.
    """
    recipe = cast("dict[str, Any]", fitted.fit_report["chosen"])
    params = recipe.get("params") or {name: recipe[name] for name in ("weights", "members") if name in recipe}
    # The scores on training data; of the average those on datasets left out.
    inner = recipe.get("inner", cast("dict[str, Any]", fitted.fit_report["left_out_scores"])["mean"])
    prior = scores.prior
    return {
        "recipe": options.own_recipe,
        "ensembler": recipe["ensembler"],
        "params": params,
        "n_prompts": len(fitted.voters),
        "selector": recipe.get("selector", "all"),
        "prompts": list(fitted.voter_names),
        "scorers": list(fitted.score_names),
        "calibrator": recipe.get("calibrator", LEARNED_PRIOR),
        **decision_metrics(
            test.labels, scores.p_consistent, scores.decisions, counts=None, documents=None, **options.resampling
        ),
        **{f"inner_{name}": inner.get(name) for name in ("log_loss", "balanced_accuracy", "accuracy")},
        "method": fitted.method,
        "prior": {
            "estimate": prior.estimate,
            "interval": [prior.low, prior.high],
            "warning": prior.warning,
        },
    }


def _results_header(split: HoldOut, settings: LooOptions) -> Row:
    """Return the keys of `results.json` that describe the run: its data, settings and training datasets."""
    labels = split.test.labels[split.test.labels >= 0]
    names, sizes = np.unique(split.train.datasets.astype(str), return_counts=True)
    analysis = analyze_votes(split.train.votes, split.train.labels, voter_names=split.train.voter_names)
    return {
        "schema_version": SCHEMA_VERSION,
        "test": split.name,
        "settings": {
            **{name: json_value(value) for name, value in settings.of_chain.items()},
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
            {"name": name, **{key: json_value(value) for key, value in row.items()}}
            for name, row in analysis.iterrows()
        ],
        "error_correlation": error_correlation(split.train.votes, split.train.labels).round(4).tolist(),
        "effective_votes": json_value(effective_votes(split.train.votes, split.train.labels)),
    }


def _reader_notes(results: Row, split: HoldOut, settings: LooOptions, n_besides: int) -> list[str]:
    """Return the caveats that a reader should know, in sentences."""
    train, n_train = split.train, len(results["train"])
    together = f"Held out together with {n_besides:,} other datasets. Everything is learned on the other {n_train:,}."
    result = [together if n_besides else None, model.shared_folds_note(n_train)]
    if settings.shown and settings.ensembler is None:
        result.append(missing_libraries_note())
    if any(recipe.inner_folds == "dataset" for recipe in settings.shown):
        result.append(
            model.shared_folds_note(n_train, model.chain_limit(train), start="While chains were searched for, the")
        )
    if any("SVC" in settings.table_ensemblers(recipe.name) for recipe in settings.shown):
        result.append(draws_note(len(distinct_patterns(np.column_stack([train.votes, train.labels]))[0])))
    notes = [note for note in dict.fromkeys(result) if note]
    effective, total = results["effective_votes"], len(results["voters"])
    if effective is not None and effective < total / 2:
        worth = f"they are worth about {effective:.1f} independent votes there"
        notes.append(f"The {total} voters make common errors on the training datasets: {worth}.")
    return notes


def _score_table(split: HoldOut, scores: model.Scores) -> pd.DataFrame:
    """Return the table of `scores.parquet`."""
    labels = pd.array(split.test.labels, dtype="Int8")
    labels[split.test.labels == -1] = pd.NA
    items = {"dataset": split.test.datasets.astype(str), "item_id": split.test.item_ids.astype(str)}
    columns = scores.columns()
    decision = pd.arrays.IntegerArray(columns["decision"], columns["decision"] == -1)  # -1: no vote
    return pd.DataFrame({**items, "label": labels, **columns | {"decision": decision}})


# A row for each chain and item: as numbers into a dictionary the names take a fraction of the file.
NAME_TYPE = pa.dictionary(pa.int32(), pa.string())

# The columns of `chains.parquet`.
CHAINS_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("dataset", "item_id", "recipe", "ensembler"), NAME_TYPE),
        "size": pa.int32(),
        "calibrator": NAME_TYPE,
        "p": pa.float64(),
    }
)


def held_out_together(votes: VoteMatrix, tests: Sequence[str], options: LooOptions) -> list[list[str]]:
    """Return the datasets to hold out, each alone or, where they are many, in groups of those held out together.

    Where patterns of votes are many, more datasets than there are groups are. Datasets with common documents are in one
    group, and siblings where families are held out.
    """
    if len(tests) <= (HELD_OUT_FOLDS.folds if model.has_many_patterns(votes) else HELD_OUT_FOLDS.above):
        return [[test] for test in tests]
    matrix = votes.rows(np.isin(votes.datasets.astype(str), list(tests)))
    limit = model.FoldLimit(HELD_OUT_FOLDS.folds, HELD_OUT_FOLDS.folds)
    folds = model.inner_folds(matrix, model.RECIPES["deep"], by_family=options.unit == "family", limit=limit).of_row
    groups: dict[int, list[str]] = {}
    for name, first in zip(*np.unique(matrix.datasets.astype(str), return_index=True), strict=True):
        groups.setdefault(int(folds[first]), []).append(str(name))
    return list(groups.values())


def member_fits(split: HoldOut, scores: ScoreTable | None, options: LooOptions, groups: Texts) -> model.Fits | None:
    """Fit the members that the model and the best judge with its context need; None of fewer than three groups."""
    if len(factorize(groups)[0]) < model.MIN_DATASETS_FOR_SPREAD:
        return None
    return _fit_members(_rivals.with_scores(split, scores)[0], groups, options).without()


def shared_fits(
    votes: VoteMatrix,
    tests: Sequence[str],
    scores: ScoreTable | None,
    options: LooOptions,
    members: Sequence[str] | None = None,
) -> model.SharedFits | None:
    """Fit the members that several held-out datasets have in common, or return None where each has its own.

    They have them in common where nothing is left out of the training but the dataset held out: every row is
    labeled, and no two datasets share a document. `members` are by default those that the options need.
    """
    names = votes.dataset_names
    alone = len(tests) < 2 or options.unit != "dataset" or len(names) <= model.MIN_DATASETS_FOR_SPREAD
    # Answers of grades and scores are mapped by the rows that a fit has, so each has its own members.
    if alone or scores is not None or (votes.labels < 0).any():
        return None
    # Two splits show every dataset that is trained on.
    if any(set(hold_out(votes, test).train.dataset_names) != set(names) - {test} for test in tests[:2]):
        return None
    if len(factorize(model.training_groups(votes))[0]) < len(names):
        return None
    return _fit_members(votes, votes.datasets, options, members, tests)


def _fit_members(
    votes: VoteMatrix,
    groups: Texts,
    options: LooOptions,
    members: Sequence[str] | None = None,
    targets: Sequence[str] = (),
) -> model.SharedFits:
    """Fit members: by default all for a stack or with scores, else those of the best judge with its context."""
    if members is None and votes.answers is None and options.asked and options.own != model.STACK:
        members = ["best-judge"]
    answer_map = None if votes.answers is None else model.AnswerMap.fit(votes)
    rows, names = model.labeled_rows(votes.answers_or_votes, votes.labels, groups, None, answer_map)
    seed, run = options.random_state, partial(in_processes, n_jobs=options.n_jobs)
    return model.fit_shared(rows, names, targets=targets, members=members, random_state=seed, run=run)


def run_all(
    settings: LooOptions,
    tests: Sequence[str],
    votes: VoteMatrix,
    scores: ScoreTable | None,
    origin: str | list[str],
    progress: Callable[[str, int], Callable[[], None]],
) -> list[LooResult]:
    """Hold out each of `tests` in turn, or where they are many in groups; what several of them need is fitted once."""
    by_test: dict[str, LooResult] = {}
    step = progress("datasets", len(tests) + 1)
    groups = held_out_together(votes, tests, settings)
    shared = prompts = None
    # A fit that is shared lacks one dataset; where several are held out together, it has seen the others of the group.
    if len(groups) == len(tests):
        shared = shared_fits(votes, tests, scores, settings)
        prompts = None if scores is None else shared_fits(votes, tests, None, settings, VOTE_MEMBERS)
    step()
    for together in groups:
        results = leave_datasets_out(
            votes,
            together,
            settings=settings,
            scores=scores,
            published={test: published_rows(test) for test in together} if origin == SIMULATED else {},
            fits=None if shared is None else shared.without(*together),
            prompt_fits=None if prompts is None else prompts.without(*together),
            n_datasets=len(tests),
            progress=progress,
        )
        for test, result in zip(together, results, strict=True):
            by_test[test] = replace(result, results={"votes": origin, **result.results})
            step()
    return [by_test[test] for test in tests]


def loo(
    votes: VotesGiven,
    scores: ScoreTable | None = None,
    *,
    tests: Sequence[str] | None = None,
    settings: LooOptions | None = None,
) -> pd.DataFrame:
    """Hold each dataset out in turn, and return the figures of every method on it.

    Parameters
    ----------
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        Of two labeled datasets or more.
    scores : ScoreTable, optional
        Encoder scores aligned with the rows of `votes`.
    tests : sequence of str, optional
        The datasets to hold out; default: each.
    settings : LooOptions, optional
        Default: those of ``deep loo``.

    Returns
    -------
    DataFrame
        A row per dataset and method: the best judge on training data, the majority, encoders, what is recommended, and
        the oracle. Figures are shares from 0 to 1, missing where a method has no P.

    Examples
    --------
    >>> import deep
    >>> from deep.datasets import simulate_votes
    >>> from deep.experiments.loo import LooOptions
    >>> table = deep.loo(simulate_votes(0), tests=["aggrefact-xsum"], settings=LooOptions(ensembler=["Average"]))
    >>> list(table)
    ['dataset', 'type', 'method', 'balanced_accuracy', 'ci_low', 'ci_high', 'ece', 'ece_floor', 'log_loss']
    >>> "recommended" in set(table["type"])
    True
    """
    matrix = as_votes(votes)
    options, names = settings or LooOptions(), matrix.dataset_names
    targets = names if tests is None else [resolve_dataset(name, names, param="tests") for name in tests]
    results = run_all(options, targets, matrix, scores, "given", lambda _task, _steps: lambda: None)
    return methods([result.results for result in results])


def write_scores(results: Sequence[LooResult], path: Path, origin: str | list[str]) -> None:
    """Write the scored items of every run; the file's metadata say where the votes came from."""
    table = pa.Table.from_pandas(pd.concat([result.scores for result in results]), preserve_index=False)
    metadata = table.schema.metadata | {b"deep.votes": json.dumps(origin).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def write_held_out(votes: VoteMatrix, tests: Sequence[str], path: Path) -> None:
    """Write the votes on the datasets that were held out: the report shows them item by item."""
    test_votes = votes.rows(np.isin(votes.datasets.astype(str), list(tests)))
    documents = {} if test_votes.document_ids is None else {"document_id": test_votes.document_ids.astype(str)}
    columns = {"label": test_votes.labels, **dict(zip(test_votes.voter_names, test_votes.votes.T, strict=True))}
    nullable = {name: pd.Series(column, dtype="Int8").replace(ABSTAIN, pd.NA) for name, column in columns.items()}
    items = {"dataset": test_votes.datasets.astype(str), "item_id": test_votes.item_ids.astype(str)}
    pd.DataFrame({**items, **documents, **nullable}).to_parquet(path, index=False)


def write_chains(results: Sequence[LooResult], path: Path, origin: str | list[str]) -> None:
    """Write P by every chain of every run, one run after the other."""
    schema = CHAINS_SCHEMA.with_metadata({b"deep.votes": json.dumps(origin).encode()})
    with pq.ParquetWriter(path, schema) as writer:
        for result in results:
            writer.write_table(pa.Table.from_pandas(result.chains, schema=schema, preserve_index=False))
