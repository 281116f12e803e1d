"""LightGBM on votes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deep._checks import Floats, Votes
from deep.ensembles._boosting import MirroredBoosting

__all__ = ["LGBM"]


class LGBM(MirroredBoosting):
    """LightGBM: gradient boosting of trees grown leaf by leaf, the most useful split first [1]_.

    LightGBM's defaults count rows, and would count a cell of weight 1,000 as one. Exact on weighted rows are
    these settings, which are fixed here: no least number of rows in a leaf (not even 1: LightGBM guesses that
    number from the weights), 1 row in a bin of votes, no voter left out for having few rows, no bundling of
    voters, and sums in one order (``deterministic``, ``force_row_wise``). Leaves are kept large by
    `min_child_weight`, which stands against weights. Trees are fitted twice, see :class:`MirroredBoosting`.

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
        Fitted to the votes as they are, and turned round.
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

    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"num_leaves": (2, 6), "n_estimators": (25, 50, 100)}

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 0.1,
        num_leaves: int = 4,
        min_child_weight: float = 1.0,
        reg_lambda: float = 0.0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda

    def _boost(self, votes: Floats, y: Votes, w: Floats) -> Any:
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
        return lightgbm.train(params, rows, num_boost_round=self.n_estimators)

    def _log_odds(self, booster: Any, votes: Floats, n_rounds: int) -> Floats:
        return np.asarray(booster.predict(votes, num_iteration=n_rounds, raw_score=True, num_threads=1))
