"""The pool in a leave-one-dataset-out run: what is recommended."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep.calibration import balanced_accuracy, bootstrap_balanced_accuracy, evaluate, precision, recall
from deep.datasets import ScoreTable
from deep.evaluate import METRICS, HoldOut, Row, null_if_nan
from deep.experiments.loo._settings import LooOptions
from deep.model import MIN_DATASETS, RECIPES, Pool, PoolScores, training_set
from deep.records import VoteMatrix


@dataclass(frozen=True, eq=False)
class Pooled:
    """P(consistent) of every held-out row by a fitted pool, and how the pool was made.

    Parameters
    ----------
    found : PoolScores
    voters : tuple of str
    weights : dict of str to float
        By member.
    learned_from : list of str
        The members whose mean P the prior is learned from.
    inner : dict of str to float
        Its scores on the training data.
    """

    found: PoolScores
    voters: tuple[str, ...]
    weights: dict[str, float]
    learned_from: list[str]
    inner: dict[str, float]

    @property
    def decisions(self) -> npt.NDArray[np.bool_]:
        """Return the decision on each held-out row, at the uniform prior."""
        return np.asarray(self.found.log_odds >= 0)

    def row(self, test: VoteMatrix, options: LooOptions) -> Row:
        """Return the entry of `results.json`."""
        low, high = self.found.prior.low, self.found.prior.high
        return {
            "recipe": "deep",
            "ensembler": "Pool",
            "params": {"weights": {name: round(weight, 6) for name, weight in self.weights.items()}},
            "n_prompts": len(self.voters),
            "selector": "all",
            "prompts": list(self.voters),
            "calibrator": "learned-prior",
            **self._metrics(test, options),
            **self.inner,
            "prior": {
                "estimate": self.found.prior.estimate,
                "interval": [low, high],
                "refused": self.found.prior.refused,
                "why": self.found.prior.why,
                "learned_from": self.learned_from,
            },
        }

    def _metrics(self, test: VoteMatrix, options: LooOptions) -> Row:
        """Return metrics of P at the learned prior, and of the decisions at the uniform one."""
        labeled = test.labels >= 0
        if not labeled.any():
            return dict.fromkeys(METRICS)
        y, p, decided = test.labels[labeled], self.found.p_consistent[labeled], self.decisions[labeled]
        interval = bootstrap_balanced_accuracy(y, decided, n_boot=options.n_boot, random_state=options.random_state)
        values: Row = {
            **evaluate(y, p, n_bins=options.n_bins, random_state=options.random_state),
            "balanced_accuracy": balanced_accuracy(y, decided),
            "balanced_accuracy_ci": list(interval),
            "precision": precision(y, decided),
            "recall": recall(y, decided),
        }
        return {name: null_if_nan(values[name]) for name in METRICS}


def fit_pool(split: HoldOut, scores: ScoreTable | None, options: LooOptions) -> Pooled | None:
    """Fit the pool on the training datasets and score the held-out one; None where they are too few.

    Datasets with common documents, or of one family where families are held out, are left out together.
    """
    recipe = RECIPES["deep"]
    training = training_set(split.train, recipe, by_family=options.unit == "family", random_state=options.random_state)
    if len(split.train.dataset_names) == 1 or training.n_folds < MIN_DATASETS:
        return None
    fold_of = dict(zip(training.cells.groups, training.fold_of, strict=True))
    groups = np.array([fold_of[str(name)] for name in split.train.datasets])
    pool = Pool(random_state=options.random_state).fit(
        split.train.votes, split.train.labels, groups=groups, scores=_rows(scores, split.train_rows)
    )
    found = pool.score(split.test.votes, scores=_rows(scores, split.test_rows))
    inner = {
        "inner_log_loss": pool.inner_log_loss_,
        "inner_balanced_accuracy": pool.inner_balanced_accuracy_,
        "inner_accuracy": pool.inner_balanced_accuracy_,
    }
    return Pooled(found, split.test.voter_names, pool.weights_, list(pool.prior_members_), inner)


def _rows(scores: ScoreTable | None, rows: npt.NDArray[np.intp]) -> Floats | None:
    return None if scores is None else scores.scores[rows]
