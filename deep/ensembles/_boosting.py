"""Boosted trees by three libraries: XGBoost, LightGBM and CatBoost on votes."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from deep._util.checks import Floats, Labels, Votes, check_above
from deep.base import Grid, StagedEnsembler
from deep.exceptions import InputError, needs_extra
from deep.features import merge_repeats, signed
from deep.records import ABSTAIN

# An xgboost.Booster, a lightgbm.Booster or a catboost.CatBoost; the three libraries come without types.
Booster = Any

# Votes, labels and weights, merged and sorted.
MergedCells = tuple[Votes, Labels, Floats]

# Weights that differ by less, as a share of their sum, are the same.
WEIGHT_TOLERANCE = 1e-9

# The least value of each parameter that has one, which the libraries would refuse in words of their own.
MIN_PARAMETER_VALUES = {"n_estimators": 1, "max_depth": 1, "num_leaves": 2, "min_child_weight": 0, "reg_lambda": 0}


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
        check_above(self.learning_rate, 0, "learning_rate")
        for name, value in self.get_params().items():
            if name in MIN_PARAMETER_VALUES and not value >= MIN_PARAMETER_VALUES[name]:
                raise InputError(f"`{name}` must be at least {MIN_PARAMETER_VALUES[name]}. Got {value!r}.")
        self.prior_ = float(np.average(y, weights=w))
        self.boosters_: tuple[Booster, ...] = ()
        # No voter varies, so that there is no split: P is the share of label 1.
        if not np.ptp(X, axis=0).any():
            return
        votes_turned = np.where(X == ABSTAIN, X, 1 - X)
        plain, turned = merge_repeats(X, y, w), merge_repeats(votes_turned, 1 - y, w)
        order = _compare_cells(plain, turned)
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
            "base_score": np.average(y, weights=w),  # where LightGBM and CatBoost start too
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
            "min_data_in_leaf": 0,  # counts cells, not their weight
            "min_data_in_bin": 1,
            "feature_pre_filter": False,  # would leave voters out by the same count
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
                "random_strength": 0,  # noise on the gain of splits; P must hang on the votes alone
                "leaf_estimation_iterations": 1,  # one Newton step, as of the others
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


def _compare_cells(a: MergedCells, b: MergedCells) -> int:
    """Return 1 or -1 by which of two tables of sorted cells comes first, 0 where they are the same but for rounding.

    What votes and labels there are decides, and then what they weigh.
    """
    rows = [np.column_stack(cells[:2]) for cells in (a, b)]
    apart = rows[0] != rows[1]
    if apart.any():
        return 1 if rows[0][apart][0] < rows[1][apart][0] else -1
    heavier = np.flatnonzero(np.abs(a[2] - b[2]) > WEIGHT_TOLERANCE * (a[2] + b[2]))
    return int(np.sign(a[2][heavier[0]] - b[2][heavier[0]])) if len(heavier) else 0
