"""Trees on votes, alone and bagged.

Both take rows merged to cells (:func:`merge_repeats`), so that ties between splits are broken alike for
weighted and for repeated rows, in any order.

A tree must send "no vote" to one side of a split that it learned from votes of 0 and 1 only; see :func:`neutral`.
"""

from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn import tree
from sklearn.utils import check_random_state

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_count, merge_repeats, neutral, signed
from deep.exceptions import InputError


@dataclass(eq=False, repr=False)
class DecisionTree(BaseEnsembler):
    """One decision tree on signed votes; P(consistent) is the weighted share of label 1 in the leaf.

    scikit-learn's [1]_. Its size is limited by depth and by the share of the weight a leaf holds, never by
    counting rows (``min_samples_leaf``), which would count a cell of weight 1,000 as one: exact on weighted
    rows.

    Parameters
    ----------
    max_depth : int or None, default=None
        The most splits from root to leaf.
    min_weight_fraction_leaf : float, default=0.02
        In [0, 0.5]: the least share of the training weight in a leaf.
    random_state : int, default=0
        Decides between splits that are equally good.

    Attributes
    ----------
    model_ : sklearn.tree.DecisionTreeClassifier

    References
    ----------
    .. [1] Breiman et al., "Classification and regression trees" (1984). https://doi.org/10.1201/9781315139470

    Examples
    --------
    >>> model = DecisionTree().fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1, 0], [-1, 1]])[:, 1].tolist()
    [1.0, 0.5]
    """

    max_depth: int | None = None
    _: KW_ONLY
    min_weight_fraction_leaf: float = 0.02
    random_state: int = 0

    param_grid: ClassVar[Grid] = {"min_weight_fraction_leaf": (0.01, 0.02, 0.05, 0.1)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        _check_size(self.max_depth, self.min_weight_fraction_leaf)
        cells, labels, weights = merge_repeats(X, y, w)
        model = tree.DecisionTreeClassifier(
            max_depth=self.max_depth,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            random_state=self.random_state,
        )
        self.model_ = model.fit(signed(cells), labels, sample_weight=weights)

    def _proba(self, X: Votes) -> Floats:
        return neutral(X, lambda votes: np.asarray(self.model_.predict_proba(votes)[:, 1]))


@dataclass(eq=False, repr=False)
class RandomForest(BaseEnsembler):
    """Decision trees on bootstrap samples, each split among the square root of the voters; their mean P.

    scikit-learn's forest [1]_ draws row by row: by default as many rows as there are cells, whatever their
    weights, and with ``max_samples`` at the sum of weights it costs time in proportion to that. Here the trees
    are scikit-learn's, and how often each cell is drawn comes straight from the multinomial distribution of
    round(sum of weights) draws, which is what drawing rows amounts to. Weighted and repeated rows have the same
    cells and so the same draws. Each tree regresses the label, which splits where Gini impurity would: the
    variance of a 0/1 label is half of it.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_depth : int or None, default=None
        The most splits from root to leaf.
    min_weight_fraction_leaf : float, default=0.01
        In [0, 0.5]: the least share of the drawn weight in a leaf.
    random_state : int, default=0
        Seed of the draws and of the choice of voters.

    Attributes
    ----------
    trees_ : list of sklearn.tree.DecisionTreeRegressor

    References
    ----------
    .. [1] Breiman, "Random forests", Machine Learning 45 (2001). https://doi.org/10.1023/A:1010933404324

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0]
    >>> model = RandomForest().fit(X, y, sample_weight=[50, 50, 50, 50])
    >>> model.predict_proba([[1, 0], [0, 1]])[:, 1].tolist()
    [1.0, 0.0]
    """

    n_estimators: int = 100
    _: KW_ONLY
    max_depth: int | None = None
    min_weight_fraction_leaf: float = 0.01
    random_state: int = 0

    param_grid: ClassVar[Grid] = {"min_weight_fraction_leaf": (0.005, 0.02, 0.05)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        _check_size(self.max_depth, self.min_weight_fraction_leaf)
        cells, labels, weights = merge_repeats(X, y, w)
        votes, target = signed(cells).astype(np.float32), labels.astype(np.float64)
        rng = np.random.default_rng(self.random_state)
        n_draws = max(1, round(weights.sum()))
        draws = rng.multinomial(n_draws, weights / weights.sum(), size=self.n_estimators).astype(np.float64)
        state = check_random_state(self.random_state)
        with _checked():
            self.trees_ = [
                self._tree(state).fit(votes, target, sample_weight=draw, check_input=False) for draw in draws
            ]

    def _tree(self, state: np.random.RandomState) -> Any:
        return tree.DecisionTreeRegressor(
            max_depth=self.max_depth,
            max_features="sqrt",
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            random_state=state,
        )

    def _proba(self, X: Votes) -> Floats:
        return neutral(X, self._mean_proba)

    def _mean_proba(self, votes: Floats) -> Floats:
        single = votes.astype(np.float32)
        total = sum(one.tree_.predict(single)[:, 0] for one in self.trees_)
        return np.asarray(total / len(self.trees_))


def _check_size(max_depth: int | None, min_weight_fraction_leaf: float) -> None:
    if max_depth is not None:
        check_count(max_depth, "max_depth")
    if not 0 <= min_weight_fraction_leaf <= 0.5:
        raise InputError(f"`min_weight_fraction_leaf` must be in [0, 0.5]. Got {min_weight_fraction_leaf!r}.")


def _checked() -> AbstractContextManager[None]:
    """Switch off scikit-learn's own checks, which repeat ours for every tree and take most of the time."""
    checked: AbstractContextManager[None] = sklearn.config_context(skip_parameter_validation=True, assume_finite=True)
    return checked
