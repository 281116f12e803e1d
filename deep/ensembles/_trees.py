"""Trees on votes, alone, bagged and boosted.

All four take rows merged to cells (:func:`merge_repeats`), so that ties between splits are broken alike for
weighted and for repeated rows, in any order.

A tree must send "no vote" to one side of a split that it learned from votes of 0 and 1 only. Either side would
read something into silence, so a row with abstains is scored twice, with all of them taken up and all taken
down, and the two are averaged. Splits that were learned with abstains present treat both alike.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn import ensemble, tree

from deep._validation import Floats, Votes
from deep.base import ABSTAIN, BaseEnsembler, StagedEnsembler
from deep.ensembles._encoding import merge_repeats, signed
from deep.exceptions import InputError

__all__ = ["AdaBoost", "DecisionTree", "GradientBoosting", "RandomForest"]


BETWEEN = 0.25
"""An abstain taken up or down: between 0, where votes 0 and 1 are split, and 0.5, where no vote and 1 are."""


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

    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"min_weight_fraction_leaf": (0.01, 0.02, 0.05, 0.1)}

    def __init__(
        self, max_depth: int | None = None, *, min_weight_fraction_leaf: float = 0.02, random_state: int = 0
    ) -> None:
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.random_state = random_state

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:
        cells, labels, weights = merge_repeats(X, y, w)
        model = tree.DecisionTreeClassifier(
            max_depth=self.max_depth,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            random_state=self.random_state,
        )
        self.model_ = model.fit(signed(cells), labels, sample_weight=weights)

    def _proba(self, X: Votes) -> Floats:
        return _neutral(X, lambda votes: np.asarray(self.model_.predict_proba(votes)[:, 1]))


class RandomForest(BaseEnsembler):
    """Decision trees on bootstrap samples, each split among the square root of the voters; their mean P.

    scikit-learn's forest [1]_ draws row by row: by default as many rows as there are cells, whatever their
    weights, and with ``max_samples`` at the sum of weights it costs time in proportion to that. Here the trees
    are scikit-learn's, and how often each cell is drawn comes straight from the multinomial distribution of
    round(sum of weights) draws, which is what drawing rows amounts to. Weighted and repeated rows have the same
    cells and so the same draws.

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
    trees_ : list of sklearn.tree.DecisionTreeClassifier

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

    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"min_weight_fraction_leaf": (0.005, 0.02, 0.05)}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = None,
        min_weight_fraction_leaf: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.random_state = random_state

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:
        if self.n_estimators < 1:
            raise InputError(f"`n_estimators` must be at least 1. Got {self.n_estimators!r}.")
        cells, labels, weights = merge_repeats(X, y, w)
        votes = signed(cells).astype(np.float32)
        rng = np.random.default_rng(self.random_state)
        n_draws = max(1, round(weights.sum()))
        draws = rng.multinomial(n_draws, weights / weights.sum(), size=self.n_estimators).astype(np.float64)
        seeds = rng.integers(2**31, size=self.n_estimators)
        self.trees_ = [
            # The votes are checked and float32 already; checking them again would take most of a tree's time.
            self._tree(int(seed)).fit(votes, labels, sample_weight=draw, check_input=False)
            for seed, draw in zip(seeds, draws, strict=True)
        ]

    def _tree(self, seed: int) -> Any:
        return tree.DecisionTreeClassifier(
            max_depth=self.max_depth,
            max_features="sqrt",
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            random_state=seed,
        )

    def _proba(self, X: Votes) -> Floats:
        return _neutral(X, self._mean_proba)

    def _mean_proba(self, votes: Floats) -> Floats:
        single = votes.astype(np.float32)
        total = sum(one.predict_proba(single, check_input=False)[:, 1] for one in self.trees_)
        return np.asarray(total / len(self.trees_))


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

    stage_param: ClassVar[str] = "n_estimators"
    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def __init__(
        self, n_estimators: int = 50, *, learning_rate: float = 0.1, max_depth: int = 2, random_state: int = 0
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.random_state = random_state

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:
        cells, labels, weights = merge_repeats(X, y, w)
        model = ensemble.GradientBoostingClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            subsample=1.0,
            random_state=self.random_state,
        )
        self.model_ = model.fit(signed(cells), labels, sample_weight=weights)

    def _proba(self, X: Votes) -> Floats:
        return _neutral(X, lambda votes: np.asarray(self.model_.predict_proba(votes)[:, 1]))

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        return _neutral(X, lambda votes: _at_stages(self._rounds(votes), stages))

    def _rounds(self, votes: Floats) -> Iterator[Floats]:
        return (proba[:, 1] for proba in self.model_.staged_predict_proba(votes))


class AdaBoost(StagedEnsembler):
    """Boosted stumps: each round's tree of one split is fitted to rows reweighted by the errors so far.

    scikit-learn's discrete AdaBoost [1]_, exact on weighted rows. P(consistent) is the logistic function of the
    weighted sum of the stumps, twice the half log-odds that boosting estimates [2]_; scikit-learn first divides
    the sum by the weights' total, which leaves every P between 0.12 and 0.88. Where no stump beats chance, P is
    the share of label 1.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds; boosting ends before at a stump without error, or none better than chance.
    learning_rate : float, default=0.5
        Above 0: shrinks each stump's weight.
    random_state : int, default=0
        Decides between splits that are equally good.

    Attributes
    ----------
    stumps_ : list of sklearn.tree.DecisionTreeClassifier
        Empty where none beat chance.
    stump_weights_ : ndarray of shape (n_stumps,)
        Log-odds of each stump being right on the reweighted rows, times `learning_rate`.
    prior_ : float
        Weighted share of label 1.

    References
    ----------
    .. [1] Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application to
       boosting", Journal of Computer and System Sciences 55 (1997). https://doi.org/10.1006/jcss.1997.1504
    .. [2] Friedman, Hastie and Tibshirani, "Additive logistic regression: a statistical view of boosting", Annals
       of Statistics 28 (2000). https://doi.org/10.1214/aos/1016218223

    Examples
    --------
    The first voter is right on 3 of 4 rows, so one round gives its vote log-odds log 3, and odds of 3 to 1.

    >>> model = AdaBoost(n_estimators=1, learning_rate=1.0)
    >>> model = model.fit([[1, 0], [1, 1], [0, 0], [0, 1]], [1, 1, 0, 1], sample_weight=[2, 2, 3, 1])
    >>> model.predict_proba([[1, 0], [0, 0]])[:, 1].round(3).tolist()
    [0.875, 0.125]
    """

    stage_param: ClassVar[str] = "n_estimators"
    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"learning_rate": (0.2, 1.0), "n_estimators": (10, 25, 50)}

    def __init__(self, n_estimators: int = 50, *, learning_rate: float = 0.5, random_state: int = 0) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _fit(self, X: Votes, y: Votes, w: Floats) -> None:
        cells, labels, weights = merge_repeats(X, y, w)
        model = ensemble.AdaBoostClassifier(
            n_estimators=self.n_estimators, learning_rate=self.learning_rate, random_state=self.random_state
        )
        self.prior_ = float(np.average(labels, weights=weights))
        try:
            self.stumps_ = model.fit(signed(cells), labels, sample_weight=weights).estimators_
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            self.stumps_ = []
        self.stump_weights_ = model.estimator_weights_[: len(self.stumps_)]

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [self.n_estimators])[0])

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        if not self.stumps_:
            return np.full((len(stages), len(X)), self.prior_)
        return _neutral(X, lambda votes: _at_stages(self._rounds(votes), stages))

    def _rounds(self, votes: Floats) -> Iterator[Floats]:
        single, log_odds = votes.astype(np.float32), np.zeros(len(votes))
        for stump, weight in zip(self.stumps_, self.stump_weights_, strict=True):
            log_odds = log_odds + weight * (2.0 * stump.predict(single, check_input=False) - 1.0)
            yield np.asarray(expit(log_odds))


def _neutral(X: Votes, proba: Callable[[Floats], Floats]) -> Floats:
    """Return `proba` of the signed votes, averaged over abstains taken up and taken down."""
    if not (X == ABSTAIN).any():
        return proba(signed(X))
    return np.asarray((proba(signed(X, BETWEEN)) + proba(signed(X, -BETWEEN))) / 2)


def _at_stages(rounds: Iterable[Floats], stages: Sequence[int]) -> Floats:
    """Return the entries of `rounds`, counted from 1, at `stages`; the last where it ended before."""
    kept: dict[int, Floats] = {}
    for number, proba in enumerate(islice(rounds, max(stages)), start=1):
        last = proba
        if number in stages:
            kept[number] = proba
    return np.asarray([kept.get(stage, last) for stage in stages])
