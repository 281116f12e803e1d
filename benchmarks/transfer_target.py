"""One dataset held out: the stack and its rivals, without a label of it and with a few."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels
from deep.calibration import balanced_accuracy, ece_noise_floor, expected_calibration_error, log_loss
from deep.datasets import ScoreTable
from deep.evaluate import HoldOut, Row, hold_out, row_weights
from deep.experiments.few_datasets import PAPER_ENSEMBLERS, PAPER_SIZES, few_labels, fit_and_score, paper_chains
from deep.experiments.loo import TestCells, balanced_accuracies, best_threshold, context_baseline, vote_baselines
from deep.features import distinct_patterns
from deep.model import ChainCandidate, Model, Scores, recommend, training_groups
from deep.records import VoteMatrix

MIN_CELL = 30
"""Rows of a vote pattern from which its observed rate is compared with the interval of P."""


Decisions = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TransferSettings:
    """Options of a transfer run.

    Parameters
    ----------
    n_draws : int
        Random draws of target labels at each size.
    n_bins : int
        Of the calibration error.
    random_state : int
    """

    n_draws: int = 200
    n_bins: int = 8
    random_state: int = 0


def transfer_to(
    votes: VoteMatrix, test: str, *, scores: ScoreTable | None = None, settings: TransferSettings | None = None
) -> Row:
    """Hold one labeled dataset out, learn on the others, and measure everything on it.

    Parameters
    ----------
    votes : VoteMatrix
        All labeled.
    test : str
    scores : ScoreTable, optional
        Soft votes aligned with the rows of `votes`.
    settings : TransferSettings, optional

    Returns
    -------
    dict
        Metrics of each method, the prior with its interval, coverage of the intervals of P, the calibration
        error with a few labels, and the stack's weights.
    """
    settings = settings or TransferSettings()
    split = hold_out(votes, test)
    y = split.test.labels
    fitted, result = fit_and_score(split, scores, random_state=settings.random_state)
    methods = {
        "deep": _metrics(y, result.p_consistent, result.decisions, settings),
        "paper": _paper(split, settings),
        "platt": _pooled_platt(split, settings),
        **_single_judges(split, scores, settings),
    }
    labeling = asdict(settings)
    return {
        "dataset": test,
        "n": len(y),
        "consistent": float(y.mean()),
        "fitted": fitted.method,
        "methods": methods,
        "prior": {
            "estimate": result.prior.estimate,
            "interval": [result.prior.low, result.prior.high],
            "covered": bool(result.prior.low <= y.mean() <= result.prior.high),
            "warning": result.prior.warning,
        },
        "cells": _cell_coverage(split.test, result),
        **few_labels(y, result.p_consistent, result.prior, result.misfit, **labeling),
        "weights": _weights(fitted),
    }


def _weights(fitted: Model) -> dict[str, float]:
    """Return the weight of each member of the stack, none where the training datasets were too few for one."""
    chosen = fitted.fit_report["chosen"]
    assert isinstance(chosen, dict)  # as every fit reports it
    return {name: round(weight, 4) for name, weight in chosen.get("weights", {}).items()}


def _metrics(y: Labels, p: Floats, decisions: Decisions, settings: TransferSettings) -> Row:
    floor = ece_noise_floor(p, n_bins=settings.n_bins)
    return {
        "balanced_accuracy": balanced_accuracy(y, decisions),
        "ece": expected_calibration_error(y, p, n_bins=settings.n_bins),
        "ece_floor": floor.mean,
        "log_loss": log_loss(y, p),
    }


def _paper(split: HoldOut, settings: TransferSettings) -> Row:
    """Return the paper's recipe: three ensemblers x three sizes, chosen by accuracy, calibrated by Platt."""
    best = recommend(paper_chains(split, PAPER_ENSEMBLERS, PAPER_SIZES, settings.random_state), "accuracy")
    return _on_rows(best, split, settings) | {"chain": f"{best.ensembler} ({len(best.prompts)})"}


def _pooled_platt(split: HoldOut, settings: TransferSettings) -> Row:
    """Return logistic regression on the votes of all rows as they come, with Platt on the same rows."""
    (best,) = paper_chains(split, ["LogisticRegression"], ["all"], settings.random_state)
    return _on_rows(best, split, settings)


def _on_rows(chain: ChainCandidate, split: HoldOut, settings: TransferSettings) -> Row:
    """Return the metrics of a chain's P on the rows of the held-out dataset."""
    p = chain.p[TestCells.from_votes(split.test).row_pattern]
    return _metrics(split.test.labels, p, p >= 0.5, settings)


def _single_judges(split: HoldOut, scores: ScoreTable | None, settings: TransferSettings) -> dict[str, Row]:
    """Return the best judge chosen on training data: its vote, its context beside it, a threshold of its score."""
    best = next(rival for rival in vote_baselines(split) if rival.kind == "best_prompt")
    result = {"best_judge": _judged(split, best.name, best.decisions)}
    context = context_baseline(split, scores, groups=training_groups(split.train), random_state=settings.random_state)
    if context is not None:
        assert context.p is not None  # as that of every judge with its context
        result["best_judge_context"] = _metrics(split.test.labels, context.p, context.decisions, settings)
    if scores is not None:
        result["best_judge_learned_threshold"] = _best_threshold(split, scores)
    return result


def _best_threshold(split: HoldOut, scores: ScoreTable) -> Row:
    y, weights, train = split.train.labels, row_weights(split.train), scores.scores[split.train_rows]
    thresholds = [best_threshold(column, y, weights) for column in train.T]
    reached = balanced_accuracies(~(train < np.array(thresholds)), y, weights)
    best = int(np.nanargmax(reached))
    decisions = ~(scores.scores[split.test_rows, best] < thresholds[best])
    return _judged(split, scores.score_names[best], decisions)


def _judged(split: HoldOut, name: str, decisions: Decisions) -> Row:
    return {"balanced_accuracy": balanced_accuracy(split.test.labels, decisions), "judge": name}


def _cell_coverage(test: VoteMatrix, found: Scores) -> Row:
    """Return how many vote patterns of at least `MIN_CELL` rows have their observed rate within the interval of P."""
    patterns, where = distinct_patterns(test.votes)
    n = np.bincount(where, minlength=len(patterns))
    low, high = (np.bincount(where, weights=bound, minlength=len(patterns)) / n for bound in found.interval(n[where]))
    rate = np.bincount(where, weights=test.labels, minlength=len(patterns)) / n
    large = n >= MIN_CELL
    inside = (low <= rate) & (rate <= high)
    return {
        "n": int(large.sum()),
        "covered": float(inside[large].mean()) if large.any() else None,
        "mean_width": float((high - low)[large].mean()) if large.any() else None,
    }
