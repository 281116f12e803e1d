"""Boosted trees by three libraries: XGBoost, LightGBM and CatBoost on votes."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from deep._util.checks import Floats, Labels, Positions, Votes
from deep.base import StagedEnsembler
from deep.ensembles._encoding import (
    Grid,
    check_above,
    check_count,
    distinct_cells,
    merge_repeats,
    neutral,
    signed,
    splits_of,
)
from deep.exceptions import InputError, needs_extra
from deep.records import ABSTAIN

Booster = Any
"""An xgboost.Booster, a lightgbm.Booster or a catboost.CatBoost; the three libraries come without types."""

MergedCells = tuple[Votes, Labels, Floats]
"""Votes, labels and weights, merged and sorted."""

ROUNDING = 1e-9
"""Weights this close, as a share of their sum, are the same."""

LEAST = {"n_estimators": 1, "max_depth": 1, "num_leaves": 2, "min_child_weight": 0, "reg_lambda": 0}
"""The least value of each parameter that has one."""


@dataclass(eq=False, repr=False)
class MirroredBoosting(StagedEnsembler):
    """Boosted trees fitted to the votes one way round and, where a vote is missing, the other way round too.

    A tree must send "no vote" to one side of a split, also where it learned that split from votes of 0 and 1
    only; the side is then an accident of the library, worth up to 0.9 in P for a row that says nothing. Turned
    round, the same library takes the other side, so the mean of the two log-odds reads nothing into silence. On rows
    in which everybody voted the two agree, and one is enough: the second is fitted when a row with a missing vote is
    first asked for. Which way round comes first is decided by the rows, so that votes turned round give exactly
    1 - P.

    A subclass adds its parameters as fields, and implements ``_boost(votes, y, w)`` and ``_log_odds(booster, votes,
    n_rounds)``; rows come merged to cells (:func:`merge_repeats`), so that sums are rounded alike for weighted and for
    repeated rows, in any order.

    Attributes
    ----------
    boosters_ : tuple of one or two boosters of the library, or of none
        Fitted to the votes the way round that comes first, and the other. None where no voter's votes vary.
    turned_ : bool
        Whether the votes turned round come first.
    prior_ : float
        Weighted share of label 1: where the boosters start, and P where there are none.
    """

    stage_param: ClassVar[str] = "n_estimators"
    n_estimators: int = 50
    _: KW_ONLY
    learning_rate: float = 0.1

    @abstractmethod
    def _boost(self, votes: Floats, y: Labels, w: Floats) -> Booster:
        """Return a booster of `n_estimators` rounds, fitted to signed votes."""

    @abstractmethod
    def _log_odds(self, booster: Booster, votes: Floats, n_rounds: int) -> Floats:
        """Return the booster's log-odds of label 1 after `n_rounds` rounds."""

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        self._check_params()
        self.prior_ = float(np.average(y, weights=w))
        self.boosters_: tuple[Booster, ...] = ()
        if not np.ptp(X, axis=0).any():
            return
        plain, turned = merge_repeats(X, y, w), merge_repeats(_turned(X), 1 - y, w)
        order = _compared(plain, turned)
        self.turned_ = order < 0
        first, self._other = (turned, plain) if self.turned_ else (plain, turned)
        self.boosters_ = (self._boost_cells(first),)
        self._one_is_enough = order != 0  # else nothing tells the two ways round apart, so that neither may come first

    def _boost_cells(self, cells: MergedCells) -> Booster:
        votes, labels, weights = cells
        return self._boost(signed(votes), labels, weights)

    def _both(self) -> tuple[Booster, ...]:
        """Return both boosters; two threads that fit the second at once fit the same one."""
        if len(self.boosters_) == 1:
            self.boosters_ = self.boosters_[0], self._boost_cells(self._other)
        return self.boosters_

    def _check_params(self) -> None:
        check_above(self.learning_rate, 0, "learning_rate")
        for name, value in self.get_params().items():
            if name in LEAST and not value >= LEAST[name]:
                raise InputError(f"`{name}` must be at least {LEAST[name]}. Got {value!r}.")

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [self.n_estimators])[0])

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        if not self.boosters_:
            return np.full((len(stages), len(X)), self.prior_)
        sign = -1.0 if self.turned_ else 1.0
        votes = sign * signed(X)
        log_odds = np.array([self._log_odds(self.boosters_[0], votes, stage) for stage in stages])
        open_rows = np.flatnonzero((X == ABSTAIN).any(axis=1)) if self._one_is_enough else np.arange(len(X))
        if len(open_rows):
            second = self._both()[1]
            other = [self._log_odds(second, -votes[open_rows], stage) for stage in stages]
            log_odds[:, open_rows] = (log_odds[:, open_rows] - np.array(other)) / 2
        return np.asarray(expit(sign * log_odds))


@dataclass(eq=False, repr=False, kw_only=True)
class XGB(MirroredBoosting):
    """XGBoost: gradient boosting of depth-limited trees with second-order leaf values [1]_.

    Exact on weighted rows, since every round is fitted to all rows (no `subsample`), and both
    `min_child_weight`, a sum of weight times P (1 - P), and `reg_lambda` stand against weights, not row counts.
    The start is the weighted share of label 1, given to XGBoost and not left to its estimate, which differs
    between versions. Where votes are missing trees are fitted twice, see :class:`MirroredBoosting`; XGBoost computes in
    single precision, so P is good to about 1e-7.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=2
        Splits from root to leaf: how many voters may interact.
    min_child_weight : float, default=1.0
        At least 0: the least sum of weight times P (1 - P) in a leaf.
    reg_lambda : float, default=1.0
        At least 0: shrinks leaves of little such weight.

    Attributes
    ----------
    boosters_ : tuple of xgboost.Booster
        Fitted to the votes one way round and, where votes are missing, the other.
    prior_ : float
        Weighted share of label 1, where boosting starts.

    References
    ----------
    .. [1] Chen and Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016.
       https://doi.org/10.1145/2939672.2939785

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0]
    >>> model = XGB().fit(X, y, sample_weight=[50, 50, 50, 50])
    >>> model.predict_proba([[1, 0], [0, 1], [-1, 1]])[:, 1].round(2).tolist()
    [0.99, 0.01, 0.5]
    """

    max_depth: int = 2
    min_child_weight: float = 1.0
    reg_lambda: float = 1.0

    param_grid: ClassVar[Grid] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def _boost(self, votes: Floats, y: Labels, w: Floats) -> Booster:
        with needs_extra("boosting", what="`ensembler` 'XGB'"):
            import xgboost

        params = {
            "objective": "binary:logistic",
            "base_score": np.average(y, weights=w),
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "reg_lambda": self.reg_lambda,
            "tree_method": "hist",
            "nthread": 1,
            "verbosity": 0,
        }
        rows = xgboost.DMatrix(votes, y, weight=w, nthread=1)
        booster = xgboost.Booster(params, [rows])
        for number in range(self.n_estimators):
            booster.update(rows, number)
        return booster

    def _log_odds(self, booster: Booster, votes: Floats, n_rounds: int) -> Floats:
        margin = booster.inplace_predict(votes, iteration_range=(0, n_rounds), predict_type="margin")
        return np.asarray(margin, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class LGBM(MirroredBoosting):
    """LightGBM: gradient boosting of trees grown leaf by leaf, the most useful split first [1]_.

    LightGBM's defaults count rows, and would count a cell of weight 1,000 as one. Exact on weighted rows are
    these settings, which are fixed here: no least number of rows in a leaf (not even 1: LightGBM guesses that
    number from the weights), 1 row in a bin of votes, no voter left out for having few rows, no bundling of
    voters, and sums in one order (``deterministic``, ``force_row_wise``). Leaves are kept large by
    `min_child_weight`, which stands against weights. Where votes are missing trees are fitted twice, see
    :class:`MirroredBoosting`.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    num_leaves : int, default=4
        At least 2: the most leaves of a tree.
    min_child_weight : float, default=1.0
        At least 0: the least sum of weight times P (1 - P) in a leaf.
    reg_lambda : float, default=0.0
        At least 0: shrinks leaves of little such weight.

    Attributes
    ----------
    boosters_ : tuple of lightgbm.Booster
        Fitted to the votes one way round and, where votes are missing, the other.
    prior_ : float
        Weighted share of label 1, where boosting starts.

    References
    ----------
    .. [1] Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017.
       https://papers.nips.cc/paper/6907-lightgbm-a-highly-efficient-gradient-boosting-decision-tree

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0]
    >>> model = LGBM().fit(X, y, sample_weight=[50, 50, 50, 50])
    >>> model.predict_proba([[1, 0], [0, 1], [-1, 1]])[:, 1].round(2).tolist()
    [0.99, 0.01, 0.5]
    """

    num_leaves: int = 4
    min_child_weight: float = 1.0
    reg_lambda: float = 0.0

    param_grid: ClassVar[Grid] = {"num_leaves": (2, 6), "n_estimators": (25, 50, 100)}

    def _boost(self, votes: Floats, y: Labels, w: Floats) -> Booster:
        with needs_extra("boosting", what="`ensembler` 'LGBM'"):
            import lightgbm

        params = {
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_sum_hessian_in_leaf": self.min_child_weight,
            "lambda_l2": self.reg_lambda,
            "min_data_in_leaf": 0,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "enable_bundle": False,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(votes, y, weight=w, params=params)
        # Else it is written as text and read again.
        return lightgbm.train(params, rows, num_boost_round=self.n_estimators, keep_training_booster=True)

    def _log_odds(self, booster: Booster, votes: Floats, n_rounds: int) -> Floats:
        return np.asarray(booster.predict(votes, num_iteration=n_rounds, raw_score=True, num_threads=1))


@dataclass(eq=False, repr=False, kw_only=True)
class CatBoost(MirroredBoosting):
    """CatBoost: gradient boosting of symmetric trees, which ask the same question on a whole level [1]_.

    CatBoost's defaults are not exact on weighted rows: it draws weights, adds noise to the scores of splits, takes
    the learning rate from the number of rows and the Newton steps a leaf from that, and scales the L2 penalty by
    the mean weight of a row; its ordered boosting goes by the order of rows. Exact is what is fixed here:
    ``boosting_type="Plain"``, ``bootstrap_type="No"``, ``random_strength=0``, the learning rate given, one Newton
    step a leaf, and the L2 penalty divided by that mean weight. Where votes are missing trees are fitted twice, see
    :class:`MirroredBoosting`. No file is written.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=3
        From 1 to 16: levels of each tree, which has 2**max_depth leaves.
    reg_lambda : float, default=3.0
        At least 0: shrinks leaves of little weight; CatBoost's ``l2_leaf_reg`` for rows of weight 1.

    Attributes
    ----------
    boosters_ : tuple of catboost.CatBoost
        Fitted to the votes one way round and, where votes are missing, the other.
    prior_ : float
        Weighted share of label 1, where boosting starts.

    References
    ----------
    .. [1] Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.
       https://arxiv.org/abs/1706.09516

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0]
    >>> model = CatBoost().fit(X, y, sample_weight=[50, 50, 50, 50])
    >>> model.predict_proba([[1, 0], [0, 1], [-1, 1]])[:, 1].round(2).tolist()
    [0.98, 0.02, 0.5]
    """

    max_depth: int = 3
    reg_lambda: float = 3.0

    param_grid: ClassVar[Grid] = {"max_depth": (2, 4), "n_estimators": (25, 50, 100)}

    def _boost(self, votes: Floats, y: Labels, w: Floats) -> Booster:
        with needs_extra("boosting", what="`ensembler` 'CatBoost'"):
            import catboost

        booster = catboost.CatBoost(
            {
                "loss_function": "Logloss",
                "iterations": self.n_estimators,
                "learning_rate": self.learning_rate,
                "depth": self.max_depth,
                "l2_leaf_reg": self.reg_lambda * len(w) / w.sum(),
                "boosting_type": "Plain",
                "bootstrap_type": "No",
                "random_strength": 0,
                "leaf_estimation_iterations": 1,
                "boost_from_average": True,
                "thread_count": 1,
                "logging_level": "Silent",
                "allow_writing_files": False,
            }
        )
        return booster.fit(catboost.Pool(votes, y, weight=w, thread_count=1))

    def _log_odds(self, booster: Booster, votes: Floats, n_rounds: int) -> Floats:
        raw = booster.predict(votes, prediction_type="RawFormulaVal", ntree_end=n_rounds, thread_count=1)
        return np.asarray(raw, dtype=np.float64)


def _turned(X: Votes) -> Votes:
    """Return votes of 0 as 1 and of 1 as 0."""
    return np.where(X == ABSTAIN, X, 1 - X)


def _compared(a: MergedCells, b: MergedCells) -> int:
    """Return 1 or -1 by which of two tables of sorted cells comes first, 0 where they are the same but for rounding.

    What votes and labels there are decides, and then what they weigh.
    """
    rows = [np.column_stack(cells[:2]) for cells in (a, b)]
    apart = rows[0] != rows[1]
    if apart.any():
        return 1 if rows[0][apart][0] < rows[1][apart][0] else -1
    heavier = np.flatnonzero(np.abs(a[2] - b[2]) > ROUNDING * (a[2] + b[2]))
    return int(np.sign(a[2][heavier[0]] - b[2][heavier[0]])) if len(heavier) else 0


TIE = 1e-12
"""Gains this close, as a share of the best, are equal."""

FLAT = 1e-150
"""A leaf of less curvature than this adds nothing."""

BLOCK = 2**21
"""Most pairs of a tree and a row that are looked at together."""


@dataclass(eq=False, repr=False)
class GradientBoosting(StagedEnsembler):
    """Gradient boosting of small regression trees on the log loss.

    Friedman's [1]_ with every round fitted to all rows: each tree splits where the squared error of what is left to
    explain falls most, and each leaf takes one Newton step. Exact on weighted rows.

    The trees are those of scikit-learn's ``GradientBoostingClassifier(subsample=1)``, which takes longer to check and
    copy them than to find them: votes have so few splits that all nodes of a level weigh all of theirs at once. Of
    splits that are equally good the first voter's wins.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=2
        Splits from root to leaf: how many voters may interact.

    Attributes
    ----------
    prior_ : float
        Log-odds of the weighted share of label 1, where boosting starts.
    voter_, left_ : ndarray of int, shape (n_estimators, n_nodes)
        By tree and node: the voter that is asked, -1 in a leaf, and the node below the threshold, which the one
        above it follows; a leaf is followed by itself.
    threshold_, value_ : ndarray of float, shape (n_estimators, n_nodes)
        Of signed votes; and what a leaf adds to the log-odds.

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

    stage_param: ClassVar[str] = "n_estimators"
    param_grid: ClassVar[Grid] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth")
        check_above(self.learning_rate, 0, "learning_rate")
        patterns, counts = distinct_cells(X, y, w)
        total, ones = counts.sum(axis=1), counts[:, 1]
        self.prior_ = float(logit(ones.sum() / total.sum()))
        grower = _Grower(signed(patterns), total, self.max_depth)
        shape = self.n_estimators, min(2 ** (self.max_depth + 1), 2 * len(patterns)) - 1
        self.voter_, self.left_ = np.full(shape, -1), np.tile(np.arange(shape[1]), (shape[0], 1))
        self.threshold_, self.value_ = np.zeros(shape), np.zeros(shape)
        log_odds = np.full(len(patterns), self.prior_)
        with np.errstate(invalid="ignore"):  # 0 / 0 on a side without rows
            for voter, threshold, left, value in zip(
                self.voter_, self.threshold_, self.left_, self.value_, strict=True
            ):
                p = expit(log_odds)
                residual = ones - total * p
                leaf = grower.grow(residual, _GrowingTree(voter, threshold, left))
                value[:] = self.learning_rate * _newton_step(leaf, residual, total * p * (1 - p), shape[1])
                log_odds += value[leaf]

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [self.n_estimators])[0])

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        return neutral(X, lambda votes: self._after(votes, stages))

    def _after(self, votes: Floats, stages: Sequence[int]) -> Floats:
        """Return P after each number of rounds, by row of signed votes."""
        n_trees = max(stages)
        step = max(1, BLOCK // n_trees)
        parts = [self._sums(votes[i : i + step], n_trees)[np.array(stages) - 1] for i in range(0, len(votes), step)]
        return np.asarray(expit(np.concatenate(parts, axis=1)))

    def _sums(self, votes: Floats, n_trees: int) -> Floats:
        """Return the log-odds after each round, shape (n_trees, n_rows)."""
        tree, row = np.arange(n_trees)[:, None], np.arange(len(votes))
        node = np.zeros((n_trees, len(votes)), dtype=np.intp)
        for _ in range(self.max_depth):
            voter = self.voter_[tree, node]
            node = self.left_[tree, node] + ((voter >= 0) & (votes[row, voter] > self.threshold_[tree, node]))
        values = self.value_[tree, node]
        values[0] += self.prior_
        return np.asarray(np.cumsum(values, axis=0))


@dataclass
class _GrowingTree:
    """One tree as arrays, an entry a node, that it fills from the root on."""

    voter: Positions
    threshold: Floats
    left: Positions
    size: int = 1

    def split(self, nodes: Positions, voter: Positions, threshold: Floats) -> Positions:
        """Give leaves two nodes each, and return the ones below the thresholds."""
        left = self.size + 2 * np.arange(len(nodes))
        self.voter[nodes], self.threshold[nodes], self.left[nodes] = voter, threshold, left
        self.size += 2 * len(nodes)
        return left


def _newton_step(leaf: Positions, residual: Floats, curvature: Floats, size: int) -> Floats:
    """Return the Newton step of each leaf; 0 for a node that is none."""
    slope, bend = (np.bincount(leaf, values, size) for values in (residual, curvature))
    return np.divide(slope, bend, out=np.zeros(size), where=bend > FLAT)


class _Grower:
    """Grows trees on the same patterns, of which all splits of all nodes of a level are weighed at once."""

    def __init__(self, votes: Floats, total: Floats, max_depth: int) -> None:
        self.votes, self.total, self.max_depth = votes, total, max_depth
        splits = splits_of(votes)
        self.voter = np.array([voter for voter, _ in splits], dtype=np.intp)
        self.threshold = np.array([threshold for _, threshold in splits])
        self.above = votes[:, self.voter] > self.threshold
        self.sides = np.hstack([~self.above, self.above]).astype(np.float64)
        self.apart = len(np.unique(self.voter)) < len(splits)  # a voter with two thresholds, hence three votes

    def grow(self, residual: Floats, tree: _GrowingTree) -> Positions:
        """Fill in the tree, and return the leaf of each pattern."""
        node = np.zeros(len(self.total), dtype=np.intp)
        nodes = np.zeros(1, dtype=np.intp)
        summed = np.array([self.total, residual])
        for _ in range(self.max_depth if len(self.voter) else 0):
            inside = node == nodes[:, None]
            best, gain = self._best(inside[:, None] * summed)
            if (gain < 0).any():  # nodes of one pattern
                nodes, inside, best = nodes[gain >= 0], inside[gain >= 0], best[gain >= 0]
            if not len(nodes):
                break
            left = tree.split(nodes, self.voter[best], self._thresholds(inside, best))
            which, pattern = inside.nonzero()
            node[pattern] = left[which] + self.above[pattern, best[which]]
            nodes = np.concatenate([left, left + 1])
        return node

    def _best(self, summed: Floats) -> tuple[Positions, Floats]:
        """Return the best split of each node, and its gain; below 0 where there is none."""
        weight, slope = (summed @ self.sides).reshape(len(summed), 2, 2, -1).swapaxes(0, 1)
        gains = (slope * slope / weight).sum(axis=1)
        gains[~(gains >= 0)] = -1.0
        best = gains.max(axis=1)
        return (gains >= (best - TIE * np.abs(best))[:, None]).argmax(axis=1), best

    def _thresholds(self, inside: npt.NDArray[np.bool_], best: Positions) -> Floats:
        """Return thresholds halfway between the votes that a node holds on either side."""
        if not self.apart:
            return self.threshold[best]
        votes, above = self.votes.T[self.voter[best]], self.above.T[best]
        low = np.where(inside & ~above, votes, -1.0).max(axis=1)
        high = np.where(inside & above, votes, 1.0).min(axis=1)
        return np.asarray((low + high) / 2)
