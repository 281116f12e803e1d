"""Selection of voters by scoring every subset."""

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np

from deep._checks import Floats, Labels, Positions, Votes
from deep.base import BasePromptSelector
from deep.exceptions import InputError

MAX_SUBSETS = 1000
"""The most subsets that are scored."""


class Exhaustive(BasePromptSelector):
    """Scores every subset of `n_prompts` voters and selects the best.

    Parameters
    ----------
    n_prompts : int, default=5
        How many voters to select, from 1 to n_voters.
    scoring : callable
        Takes the positions of the columns, ascending, as a tuple of int, and returns a finite number, higher is
        better. It holds the data that it scores on.

    Attributes
    ----------
    ranking_ : ndarray of int, shape (n_voters,)
        The selected voters come first. Both they and the others are ordered by marginal worth: the mean score of the
        scored subsets that hold the voter. Ties go to the earlier column.
    support_ : ndarray of bool, shape (n_voters,)
        True for the best subset; of subsets with equal scores, the first in lexicographic order.

    Raises
    ------
    InputError
        On `fit`: there are more than 1,000 subsets, or a score is not finite.

    Notes
    -----
    Votes, labels and weights given to `fit` are checked and otherwise left to `scoring`. A ranking holds for its own
    `n_prompts` alone: the best set of three need not lie within the best set of five.

    Examples
    --------
    No two voters do better together than the first and the second.

    >>> from deep.features import Exhaustive
    >>> worth = {(0, 1): 0.9, (0, 2): 0.8, (1, 2): 0.7}
    >>> selector = Exhaustive(2, scoring=worth.__getitem__).fit([[1, 0, 1], [0, 0, 1]], [1, 0])
    >>> selector.get_support(indices=True)
    array([0, 1])
    >>> selector.ranking_
    array([1, 2, 3])
    """

    def __init__(self, n_prompts: int = 5, *, scoring: Callable[[tuple[int, ...]], float]) -> None:
        self.n_prompts = n_prompts
        self.scoring = scoring

    def _rank(
        self,
        X: Votes,
        y: Labels,  # noqa: ARG002
        w: Floats,  # noqa: ARG002
    ) -> Positions:
        n_voters = X.shape[1]
        self._check_feasible(n_voters)
        subsets = list(combinations(range(n_voters), self.n_prompts))
        scores = np.array([self._score(subset) for subset in subsets])
        holds = np.zeros((len(subsets), n_voters))
        np.put_along_axis(holds, np.array(subsets), 1.0, axis=1)
        worth = scores @ holds / holds.sum(axis=0)
        return np.lexsort((-worth, -holds[np.argmax(scores)]))

    def _check_feasible(self, n_voters: int) -> None:
        count = comb(n_voters, self.n_prompts)
        if count > MAX_SUBSETS:
            raise InputError(
                f"`n_prompts` must leave at most {MAX_SUBSETS} subsets to score. "
                f"Got {self.n_prompts} of {n_voters} voters, which is {count} subsets. Use --selector auto."
            )

    def _score(self, subset: tuple[int, ...]) -> float:
        score = float(self.scoring(subset))
        if not np.isfinite(score):
            raise InputError(f"`scoring` must return a finite number. Got {score!r} at columns {subset}.")
        return score
