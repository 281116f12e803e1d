"""XGBoost on votes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deep._checks import Floats, Votes
from deep.ensembles._boosting import MirroredBoosting

__all__ = ["XGB"]


class XGB(MirroredBoosting):
    """XGBoost: gradient boosting of depth-limited trees with second-order leaf values [1]_.

    Exact on weighted rows, since every round is fitted to all rows (no `subsample`), and both
    `min_child_weight`, a sum of weight times P (1 - P), and `reg_lambda` stand against weights, not row counts.
    The start is the weighted share of label 1, given to XGBoost and not left to its estimate, which differs
    between versions. Trees are fitted twice, see :class:`MirroredBoosting`; XGBoost computes in single
    precision, so P is good to about 1e-7.

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
        Fitted to the votes as they are, and turned round.
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

    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def __init__(
        self,
        n_estimators: int = 50,
        *,
        learning_rate: float = 0.1,
        max_depth: int = 2,
        min_child_weight: float = 1.0,
        reg_lambda: float = 1.0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda

    def _boost(self, votes: Floats, y: Votes, w: Floats) -> Any:
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
        return xgboost.train(params, rows, num_boost_round=self.n_estimators)

    def _log_odds(self, booster: Any, votes: Floats, n_rounds: int) -> Floats:
        margin = booster.inplace_predict(votes, iteration_range=(0, n_rounds), predict_type="margin")
        return np.asarray(margin, dtype=np.float64)
