"""Which voters to ensemble, chosen on training data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deep._checks import check_choice
from deep.features import SELECTORS, Exhaustive
from deep.model.chain._grid import cross_validate
from deep.model.chain._recipe import Criterion
from deep.model.chain._training import TrainingSet

SELECTOR_NAMES = ("auto", *SELECTORS)


@dataclass(frozen=True)
class Subset:
    """Some columns of a vote matrix and the selector that chose them ('all' where there was no choice)."""

    columns: tuple[int, ...]
    selector: str


def choose_subsets(
    training: TrainingSet, sizes: Sequence[int], *, selector: str = "auto", criterion: Criterion = "balanced_accuracy"
) -> list[Subset]:
    """Choose one subset of the voters for each size.

    Parameters
    ----------
    training : TrainingSet
    sizes : sequence of int
        Numbers of voters; a size of at least the number of voters takes them all.
    selector : {'auto', 'exhaustive', 'mrmr', 'mrmr-selection', 'rfe'}, default='auto'
        'auto' takes the better of mRMR and RFE for each size, by the inner `criterion` of logistic
        regression; 'exhaustive' tries every subset by inner log loss.
    criterion : {'accuracy', 'balanced_accuracy', 'log_loss'}, default='balanced_accuracy'

    Returns
    -------
    list of Subset
        In the order of `sizes`; columns in ascending order.

    Raises
    ------
    InputError
        `selector` is unknown, or 'exhaustive' would have to try more than 1,000 subsets.
    """
    check_choice(selector, SELECTOR_NAMES, "selector")
    n_voters = len(training.cells.voter_names)
    subsets: list[Subset] = []
    rankings = _rankings(training, selector) if any(size < n_voters for size in sizes) else {}
    for size in sizes:
        if size >= n_voters:
            subsets.append(Subset(tuple(range(n_voters)), "all"))
        elif selector == "exhaustive":
            subsets.append(_exhaustive(training, size))
        else:
            proposals = [Subset(tuple(sorted(order[:size])), name) for name, order in rankings.items()]
            subsets.append(_better(training, proposals, criterion))
    return subsets


def _rankings(training: TrainingSet, selector: str) -> dict[str, list[int]]:
    """Return the voters from best to worst by each selector that ranks."""
    wanted = {"auto": ("mrmr", "rfe"), "exhaustive": ()}.get(selector, (selector,))
    table = training.table()
    # Rankings do not depend on how many are wanted: one.
    return {name: np.argsort(SELECTORS[name](1).fit(*table).ranking_).tolist() for name in wanted}


def _better(training: TrainingSet, proposals: Sequence[Subset], criterion: Criterion) -> Subset:
    """Return the proposal with the best inner score; the first of equals."""
    if len({subset.columns for subset in proposals}) == 1:
        return proposals[0]
    scores = [cross_validate("LogisticRegression", training.select(s.columns), criterion) for s in proposals]
    return proposals[int(np.argmax(scores))]


def _exhaustive(training: TrainingSet, size: int) -> Subset:
    def inner_log_loss(columns: tuple[int, ...]) -> float:
        return cross_validate("LogisticRegression", training.select(columns), "log_loss")

    selector = Exhaustive(n_prompts=size, scoring=inner_log_loss).fit(*training.table())
    return Subset(tuple(np.flatnonzero(selector.support_).tolist()), "exhaustive")
