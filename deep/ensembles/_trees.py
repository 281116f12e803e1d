"""Trees on votes, alone, bagged and boosted.

All take rows merged to cells (:func:`merge_repeats`), so that ties between splits are broken alike for
weighted and for repeated rows, in any order.

A tree must send "no vote" to one side of a split that it learned from votes of 0 and 1 only; see :func:`neutral`.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from sklearn import ensemble, tree
from sklearn.utils import check_random_state

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler, StagedEnsembler
from deep.ensembles._encoding import Grid, at_stages, check_above, check_count, merge_repeats, neutral, signed
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
        total = sum(one.predict(single, check_input=False) for one in self.trees_)
        return np.asarray(total / len(self.trees_))


@dataclass(eq=False, repr=False)
class GradientBoosting(StagedEnsembler):
    """Gradient boosting of small regression trees on the log loss.

    scikit-learn's [1]_, with every round fitted to all rows (``subsample=1``) and no limit that counts rows,
    under which it is exact on weighted rows.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=2
        Splits from root to leaf: how many voters may interact.
    random_state : int, default=0
        Decides between splits that are equally good.

    Attributes
    ----------
    model_ : sklearn.ensemble.GradientBoostingClassifier

    References
    ----------
    .. [1] Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29 (2001).
       https://doi.org/10.1214/aos/1013203451

    Examples
    --------
    The first round moves the log-odds, 0 at the start, by a tenth of a Newton step of 2: 1 / (1 + exp(-0.2)).

    >>> model = GradientBoosting(n_estimators=10).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.staged_predict_proba([[1, 0]], [1, 10]).round(2).tolist()
    [[0.55], [0.82]]
    """

    n_estimators: int = 50
    _: KW_ONLY
    learning_rate: float = 0.1
    max_depth: int = 2
    random_state: int = 0

    stage_param: ClassVar[str] = "n_estimators"
    param_grid: ClassVar[Grid] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth")
        check_above(self.learning_rate, 0, "learning_rate")
        cells, labels, weights = merge_repeats(X, y, w)
        model = ensemble.GradientBoostingClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            subsample=1.0,
            random_state=self.random_state,
        )
        with _checked():
            self.model_ = model.fit(signed(cells), labels, sample_weight=weights)

    def _proba(self, X: Votes) -> Floats:
        return neutral(X, lambda votes: np.asarray(self.model_.predict_proba(votes)[:, 1]))

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        return neutral(X, lambda votes: at_stages(self._rounds(votes), stages))

    def _rounds(self, votes: Floats) -> Iterator[Floats]:
        return (proba[:, 1] for proba in self.model_.staged_predict_proba(votes))


def _check_size(max_depth: int | None, min_weight_fraction_leaf: float) -> None:
    if max_depth is not None:
        check_count(max_depth, "max_depth")
    if not 0 <= min_weight_fraction_leaf <= 0.5:
        raise InputError(f"`min_weight_fraction_leaf` must be in [0, 0.5]. Got {min_weight_fraction_leaf!r}.")


def _checked() -> AbstractContextManager[None]:
    """Switch off scikit-learn's own checks, which repeat ours for every tree and take most of the time."""
    checked: AbstractContextManager[None] = sklearn.config_context(skip_parameter_validation=True, assume_finite=True)
    return checked
