"""The options of a run, its chains, which may be searched for in several processes, and its model.

The model is fitted as `deep fit --exclude` fits it, and scores as `deep score` does.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep import model
from deep._util.checks import Texts, Votes, numbered
from deep._util.odds import expit, logit
from deep.console import in_processes
from deep.datasets import ScoreTable
from deep.evaluate import HELD_OUT, HoldOut, Row, decision_metrics, hold_out
from deep.experiments.loo._command import LooOptions
from deep.experiments.loo._rivals import TestCells, with_scores
from deep.experiments.loo._show import LEARNED_PRIOR
from deep.features import distinct_patterns
from deep.records import VoteMatrix

Step = Callable[[], None]

# A candidate chain and its metrics on the held-out dataset.
ScoredChain = tuple[model.Candidate, Row]


@dataclass(frozen=True)
class LooOutcome:
    """One ensembler's chains with their metrics on one dataset, or the reason why there are none.

    Parameters
    ----------
    ensembler : str
        Its registered name.
    recipe : str
        ``deep`` or ``paper``.
    scored : list of (Candidate, dict)
        Chains that could be fitted, with their metrics.
    warning : str or None
        Why some or all chains could not be fitted; None where nothing went wrong.
    seconds : float
        Of processor time, on all datasets held out together.
    """

    ensembler: str
    recipe: str
    scored: list[ScoredChain] = field(default_factory=list)
    warning: str | None = None
    seconds: float = 0.0


def run_tasks(
    tasks: Sequence[model.ChainTask], targets: Sequence[TestCells], options: LooOptions, step: Step
) -> list[list[LooOutcome]]:
    """Run the tasks, in as many processes as the options say.

    Parameters
    ----------
    tasks : sequence of ChainTask
        As :func:`deep.model.chain_tasks` makes them.
    targets : sequence of TestCells
        The datasets that are held out together.
    options : LooOptions
        Its `n_jobs`, `netcal`, and the bins, resamples and seed of the metrics are used.
    step : callable
        Called after each task.

    Returns
    -------
    list of list of LooOutcome
        Of each target, in the order of `tasks`, whatever the number of processes.

    Raises
    ------
    InputError
        There are tasks, and none of them has any chain to show.
    """
    if not tasks:
        return [[] for _ in targets]
    # The costliest start first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].subset.columns))
    # Each vote pattern once, and which of them each dataset has.
    patterns, where = distinct_patterns(np.concatenate([target.patterns for target in targets]))
    rows = np.split(where, np.cumsum([len(target.patterns) for target in targets])[:-1])
    measure = partial(_measure, patterns, list(zip(targets, rows, strict=True)), options)
    result: dict[int, list[LooOutcome]] = {}
    for position, outcome in in_processes(measure, [(i, tasks[i]) for i in order], options.n_jobs, ordered=False):
        result[position] = outcome
        step()
    outcomes = [result[i] for i in range(len(tasks))]
    model.all_candidates(model.ChainAttempt([candidate for candidate, _ in o.scored], o.warning) for o, *_ in outcomes)
    return [list(of_target) for of_target in zip(*outcomes, strict=True)]


def _measure(
    patterns: Votes,
    targets: Sequence[tuple[TestCells, npt.NDArray[np.intp]]],
    options: LooOptions,
    numbered: tuple[int, model.ChainTask],
) -> tuple[int, list[LooOutcome]]:
    """Run one task on all patterns and measure its candidates on each held-out dataset, by those that it has."""
    (position, task), started = numbered, time.process_time()
    attempt = task.run(patterns)
    result: list[list[ScoredChain]] = [[] for _ in targets]
    for scored, (target, where) in zip(result, targets, strict=True):
        for candidate in attempt.candidates:
            # P as the model of a chain gives it, from its log-odds: the same to the last digit on any processor.
            p = expit(logit(candidate.p[where]))
            metrics = target.metrics(p, **options.resampling)
            if options.netcal and target.labeled:
                metrics["ece_netcal"] = target.netcal_ece(p, n_bins=options.n_bins)
            scored.append((replace(candidate, p=p), metrics))
    seconds = time.process_time() - started
    of_task = partial(LooOutcome, task.ensembler, task.recipe.name, warning=attempt.reason, seconds=seconds)
    return position, [of_task(scored) for scored in result]


Codes = npt.NDArray[np.intp]


def chain_table(split: HoldOut, target: TestCells, scored: Mapping[str, Sequence[ScoredChain]]) -> pd.DataFrame:
    """Return a row for each chain and item, the items of one chain together.

    Parameters
    ----------
    split : HoldOut
        The dataset held out, and the training rows.
    target : TestCells
        The held-out rows by pattern of votes; each chain has a P for every pattern.
    scored : mapping of str to sequence of (Candidate, dict)
        The chains by recipe.

    Returns
    -------
    DataFrame
        ``dataset, item_id, recipe, ensembler, size, calibrator, p``: P as the chain gives it, at equal class weights
        under deep's recipe.
    """
    chains = [(recipe, candidate) for recipe, pairs in scored.items() for candidate, _ in pairs]
    n, n_items = len(chains), len(target.row_pattern)
    # Numbers of chains and items, not their names: a run has thousands of chains on thousands of items.
    of_chain, of_item = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
    sizes = np.array([len(one.subset.columns) for _, one in chains], dtype=np.int32)
    p = [one.p[target.row_pattern] for _, one in chains]
    return pd.DataFrame(
        {
            "dataset": _names([split.name] * n_items, of_item),
            "item_id": _names(split.test.item_ids.astype(str), of_item),
            "recipe": _names([recipe for recipe, _ in chains], of_chain),
            "ensembler": _names([one.ensembler for _, one in chains], of_chain),
            "size": sizes[of_chain],
            "calibrator": _names([one.calibrator or model.UNCALIBRATED for _, one in chains], of_chain),
            "p": np.concatenate(p) if p else np.empty(0),
        }
    )


def _names(values: Sequence[str] | npt.NDArray[np.str_], rows: Codes) -> pd.Categorical:
    """Return the values at these rows, each name held once."""
    distinct, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
    return pd.Categorical.from_codes(codes[rows], categories=distinct.tolist())


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


def held_out_together(votes: VoteMatrix, tests: Sequence[str], options: LooOptions) -> list[list[str]]:
    """Return the datasets to hold out, each alone or, where they are many, in groups of those held out together.

    Where patterns of votes are many, more datasets than there are groups are. Datasets with common documents are in one
    group, and siblings where families are held out.
    """
    if len(tests) <= (HELD_OUT.folds if model.many_patterns(votes) else HELD_OUT.above):
        return [[test] for test in tests]
    matrix = votes.rows(np.isin(votes.datasets.astype(str), list(tests)))
    limit = model.FoldLimit(HELD_OUT.folds, HELD_OUT.folds)
    folds = model.inner_folds(matrix, model.RECIPES["deep"], by_family=options.unit == "family", limit=limit).of_row
    groups: dict[int, list[str]] = {}
    for name, first in zip(*np.unique(matrix.datasets.astype(str), return_index=True), strict=True):
        groups.setdefault(int(folds[first]), []).append(str(name))
    return list(groups.values())


def member_fits(split: HoldOut, scores: ScoreTable | None, options: LooOptions, groups: Texts) -> model.Fits | None:
    """Fit the members that the model and the best judge with its context need; None of fewer than three groups."""
    if len(numbered(groups)[0]) < model.MIN_DATASETS:
        return None
    return _fitted(with_scores(split, scores)[0], groups, options).without()


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
    alone = len(tests) < 2 or options.unit != "dataset" or len(names) <= model.MIN_DATASETS
    # Answers of grades and scores are mapped by the rows that a fit has, so each has its own members.
    if alone or scores is not None or (votes.labels < 0).any():
        return None
    # Two splits show every dataset that is trained on.
    if any(set(hold_out(votes, test).train.dataset_names) != set(names) - {test} for test in tests[:2]):
        return None
    if len(numbered(model.training_groups(votes))[0]) < len(names):
        return None
    return _fitted(votes, votes.datasets, options, members, tests)


def _fitted(
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
