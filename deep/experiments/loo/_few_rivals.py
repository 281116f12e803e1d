"""The rivals that `deep loo --few` and `benchmarks/transfer.py` compare with `fit`, on any held-out dataset."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._odds import at_prior, expit, logit
from deep.ensembles import BernoulliNB, DawidSkene, LabelModel, LogisticRegression, WeightedMajorityVoting
from deep.evaluate import HoldOut, TestCells, row_weights
from deep.model import (
    MIN_DATASETS,
    RECIPES,
    STACK,
    Candidate,
    LabeledRows,
    Model,
    Scores,
    Stack,
    chain_tasks,
    fit,
    fit_best_judge,
    fit_majority,
    recommend,
    search,
    training_groups,
    training_set,
)
from deep.records import VoteMatrix

CONSTANT = "training prior"
"""The mean prior of the training datasets for every row, which decides nothing."""

PAPER_ENSEMBLERS = ("GradientBoosting", "LogisticRegression", "RandomForest")
PAPER_SIZES = (3, 5, 9)

Found = tuple[Floats, npt.NDArray[np.bool_]]
"""P(consistent) and the decision of each held-out row."""


def rivals(split: HoldOut, scores: Floats | None, random_state: int) -> Iterator[tuple[str, Found]]:
    """Yield each rival; those that weigh both classes alike get the mean prior of the training datasets."""
    train, test = split.train, split.test.votes
    prior, w = _mean_prior(train), row_weights(train)
    rows = LabeledRows.of(train)

    def at_mean(uniform: Floats) -> Found:
        return at_prior(uniform, prior), uniform >= 0.5

    yield CONSTANT, (np.full(len(test), prior), np.ones(len(test), dtype=bool))
    yield "best judge", at_mean(expit(fit_best_judge(rows).log_odds(test)))
    # A majority decides by itself; labels only give it a probability.
    ones = (test == 1).sum(axis=1) - (test == 0).sum(axis=1)
    yield "majority", (at_prior(expit(fit_majority(rows).log_odds(test)), prior), ones >= 0)
    for name, ensembler in (
        ("weighted majority", WeightedMajorityVoting()),
        ("naive Bayes", BernoulliNB()),
        ("ridge", LogisticRegression()),
    ):
        yield name, at_mean(ensembler.fit(train.votes, train.labels, sample_weight=w).predict_proba(test)[:, 1])
    yield "Dawid-Skene on the target", _as_given(DawidSkene().fit(test).predict_proba(test)[:, 1])
    if test.shape[1] >= LabelModel.min_voters:
        yield "LabelModel", at_mean(LabelModel().fit(train.votes, sample_weight=w).predict_proba(test)[:, 1])
    yield "the paper's recipe", _as_given(paper_p(split, random_state))
    context = judge_in_context(split, scores, random_state=random_state)
    if context is not None:
        yield "best judge, its context", _scored(context)
        yield "Stack", _scored(fit_and_score(split, scores, ensembler=STACK, random_state=random_state)[1])


def _scored(found: Scores) -> Found:
    return found.p_consistent, found.decisions


def _as_given(p: Floats) -> Found:
    return p, p >= 0.5


def fit_and_score(
    split: HoldOut, scores: Floats | None, *, random_state: int, ensembler: str | None = None
) -> tuple[Model, Scores]:
    """Return the fit on the training datasets and its scores of the held-out one.

    Parameters
    ----------
    split : HoldOut
    scores : ndarray of float, shape (n_examples, n_scorers), or None
        Of all rows; a fit that cannot use them goes without.
    random_state : int
    ensembler : str, optional
        As in :func:`deep.model.fit`.
    """
    fitted = fit(split.train, scores=_at(scores, split.train_rows), ensembler=ensembler, random_state=random_state)
    held = _at(scores, split.test_rows) if fitted.score_names else None
    return fitted, fitted.scores_of(split.test, scores=held)


def judge_in_context(split: HoldOut, scores: Floats | None, *, random_state: int) -> Scores | None:
    """Return the scores by one judge (its score where there are scores) and its mean over the dataset.

    None where the training datasets are too few to learn what that mean tells.
    """
    groups = training_groups(split.train)
    if len(np.unique(groups)) < MIN_DATASETS:
        return None
    stack = Stack(["best-judge" if scores is None else "best-score"], random_state=random_state)
    stack.fit(split.train.votes, split.train.labels, groups=groups, scores=_at(scores, split.train_rows))
    return stack.score(split.test.votes, scores=_at(scores, split.test_rows))


def _at(scores: Floats | None, rows: npt.NDArray[np.intp]) -> Floats | None:
    return None if scores is None else scores[rows]


def paper_p(split: HoldOut, random_state: int) -> Floats:
    """Return P of each held-out row by the paper's recipe."""
    best = recommend(paper_chains(split, PAPER_ENSEMBLERS, PAPER_SIZES, random_state), "accuracy")
    return best.p[TestCells.from_votes(split.test).row_pattern]


def paper_chains(
    split: HoldOut, ensemblers: Sequence[str], sizes: Sequence[int | str], random_state: int
) -> list[Candidate]:
    """Return the chains of the paper's recipe, each with Platt."""
    training = training_set(split.train, RECIPES["paper"], random_state=random_state)
    tasks = chain_tasks(
        training,
        RECIPES["paper"],
        sizes=sizes,
        ensemblers=ensemblers,
        calibrators=["platt"],
        random_state=random_state,
    )
    return search(tasks, TestCells.from_votes(split.test).patterns)


def _mean_prior(train: VoteMatrix) -> float:
    """Return the mean of the log-odds of the training priors, as a share."""
    shares = [float(train.labels[train.datasets == name].mean()) for name in train.dataset_names]
    return float(expit(logit(shares, clip=0.01).mean()))
