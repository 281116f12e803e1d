"""CatBoost on votes."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from deep._checks import Floats, Votes
from deep.ensembles._boosting import MirroredBoosting

__all__ = ["CatBoost"]


class CatBoost(MirroredBoosting):
    """CatBoost: gradient boosting of symmetric trees, which ask the same question on a whole level [1]_.

    CatBoost's defaults are not exact on weighted rows: it draws weights, adds noise to the scores of splits, takes
    the learning rate from the number of rows and the Newton steps a leaf from that, and scales the L2 penalty by
    the mean weight of a row; its ordered boosting goes by the order of rows. Exact is what is fixed here:
    ``boosting_type="Plain"``, ``bootstrap_type="No"``, ``random_strength=0``, the learning rate given, one Newton
    step a leaf, and the L2 penalty divided by that mean weight. Trees are fitted twice, see
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
        Fitted to the votes as they are, and turned round.
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

    param_grid: ClassVar[Mapping[str, Sequence[Any]]] = {"max_depth": (2, 4), "n_estimators": (25, 50, 100)}

    def __init__(
        self, n_estimators: int = 50, *, learning_rate: float = 0.1, max_depth: int = 3, reg_lambda: float = 3.0
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.reg_lambda = reg_lambda

    def _boost(self, votes: Floats, y: Votes, w: Floats) -> Any:
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

    def _log_odds(self, booster: Any, votes: Floats, n_rounds: int) -> Floats:
        raw = booster.predict(votes, prediction_type="RawFormulaVal", ntree_end=n_rounds, thread_count=1)
        return np.asarray(raw, dtype=np.float64)
