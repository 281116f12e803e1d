"""The members of the stack: ways to turn the judges' votes and scores into one log-odds a row.

A member is fitted on labeled datasets and returns a scorer. None looks at how the votes of a new dataset are
distributed: docs/decisions/0011-one-model.md says what those that did were worth.
"""

from collections.abc import Callable, Sequence

import numpy as np

from deep._checks import Floats
from deep.ensembles import RandomForest
from deep.model.linear import LabeledRows, fit_best_judge, fit_majority, fit_ridge
from deep.model.score import ScoreForest, Scorer, ScoreSum, Trees, VoteForest, VoteSum, fit_standardizer, strongest

Member = Callable[[LabeledRows, int], Scorer]
"""From labeled datasets and a seed to a scorer."""

N_TOP = 4
"""How many scorers the member of few scores looks at."""

FOREST_ROWS = 300
"""Most rows of a dataset and class that the forest on scores is grown on."""


def _best_judge(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return VoteSum(fit_best_judge(train))


def _majority(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return VoteSum(fit_majority(train))


def _ridge_votes(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return VoteSum(fit_ridge(train))


def _forest_votes(train: LabeledRows, seed: int) -> Scorer:
    model = RandomForest(100, max_depth=5, random_state=seed)
    model.fit(train.votes, train.labels, sample_weight=train.balanced())
    return VoteForest(Trees.from_sklearn([one.tree_ for one in model.trees_], lambda tree: tree.value[:, 0, 0]))


def _best_score(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return _linear_scores(train, strongest(train, 1))


def _logistic_top_scores(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return _linear_scores(train, strongest(train, N_TOP))


def _logistic_scores(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    return _linear_scores(train, list(range(train.scores.shape[1])))


def _linear_scores(train: LabeledRows, columns: list[int]) -> Scorer:
    """Fit a ridge logistic regression on standardised scores."""
    from sklearn.linear_model import LogisticRegression as Ridge

    weights = train.balanced()
    standardized = fit_standardizer(train.scores[:, columns], weights)
    # A mean loss beside a penalty of 1 / 200: how hard it pulls depends neither on rows nor on their weights.
    model = Ridge(C=100.0 / weights.sum(), max_iter=500)
    model.fit(standardized(train.scores[:, columns]), train.labels, sample_weight=weights)
    return ScoreSum(tuple(columns), standardized, float(model.intercept_[0]), model.coef_[0])


def _forest_scores(train: LabeledRows, seed: int) -> Scorer:
    from sklearn.ensemble import RandomForestClassifier

    rows = _thinned(train, seed)
    standardized = fit_standardizer(rows.scores, rows.balanced())
    model = RandomForestClassifier(40, max_depth=6, max_features=0.3, min_weight_fraction_leaf=0.005, random_state=seed)
    model.fit(standardized(rows.scores), rows.labels, sample_weight=rows.balanced())
    return ScoreForest(standardized, Trees.from_sklearn([one.tree_ for one in model.estimators_], _share_of_ones))


def _share_of_ones(tree: object) -> Floats:
    values = np.asarray(getattr(tree, "value"))[:, 0, :]  # noqa: B009 - scikit-learn ships no types
    return np.asarray(values[:, 1] / values.sum(axis=1))


def _thinned(train: LabeledRows, seed: int) -> LabeledRows:
    """Return at most `FOREST_ROWS` rows of every dataset and class, drawn at random."""
    rng = np.random.default_rng(seed)
    code = 2 * train.groups + train.labels
    kept = [rng.permutation(np.flatnonzero(code == one))[:FOREST_ROWS] for one in np.unique(code)]
    return train.rows(np.sort(np.concatenate(kept)))


MEMBERS: dict[str, Member] = {
    "best-judge": _best_judge,
    "best-score": _best_score,
    "forest-scores": _forest_scores,
    "forest-votes": _forest_votes,
    "logistic-scores": _logistic_scores,
    "logistic-top-scores": _logistic_top_scores,
    "majority": _majority,
    "ridge-votes": _ridge_votes,
}
"""Every member by name."""

NEEDS_SCORES = ("best-score", "forest-scores", "logistic-scores", "logistic-top-scores")

SIMPLE = ("best-judge", "majority", "ridge-votes")
"""Members on votes in which little is chosen."""

SIMPLE_WITH_SCORES = ("best-score",)


def members_for(n_scorers: int) -> tuple[str, ...]:
    """Return the members that can be fitted on votes and so many scorers.

    Examples
    --------
    >>> members_for(0)
    ('best-judge', 'forest-votes', 'majority', 'ridge-votes')
    """
    return tuple(
        name
        for name in sorted(MEMBERS)
        if (n_scorers or name not in NEEDS_SCORES) and (n_scorers > 1 or name != "logistic-top-scores")
    )


def simple_members(names: Sequence[str]) -> tuple[str, ...]:
    """Return the members towards which weights are drawn: all where none of them is simple."""
    known = SIMPLE_WITH_SCORES if "best-score" in names else SIMPLE
    return tuple(name for name in names if name in known) or tuple(names)
