"""The members of the pool: ways to turn the judges' votes and scores on a dataset into one log-odds a row.

A member is fitted on labeled datasets and returns a scorer of a dataset it has not seen. The scorer is handed all
rows of that dataset at once and may look at how its votes are distributed, never at a label.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from deep._checks import Floats
from deep._odds import logit
from deep.base import BaseEnsembler
from deep.ensembles import LabelModel, LogisticRegression, RandomForest
from deep.features import distinct_patterns, weigh
from deep.model.pool._latent_class import JudgeEstimate, fit_latent_class, judge_estimates
from deep.model.pool._rows import LabeledRows, Rows
from deep.model.pool._soft import fit_standardizer, strongest
from deep.model.pool._tilt import fit_tilt

Scorer = Callable[[Rows], Floats]
"""From the rows of one dataset to one log-odds each."""

Member = Callable[[LabeledRows, int], Scorer]
"""From labeled datasets and a seed to a scorer."""

P_CLIP = 1e-3
"""Members' probabilities are held within [P_CLIP, 1 - P_CLIP] before they become log-odds: a pure leaf is no proof."""

N_TOP = 4
"""How many scorers the member of few scores looks at."""

FOREST_ROWS = 300
"""Most rows of a dataset and class that the forest on scores is grown on."""


def _logistic_votes(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - nothing is drawn
    model = LogisticRegression().fit(train.votes, train.labels, sample_weight=train.balanced())
    return lambda target: _of_patterns(target, model)


def _forest_votes(train: LabeledRows, seed: int) -> Scorer:
    model = RandomForest(100, max_depth=5, random_state=seed)
    model.fit(train.votes, train.labels, sample_weight=train.balanced())
    return lambda target: _of_patterns(target, model)


def _label_model_source(train: LabeledRows, seed: int) -> Scorer:
    size = weigh(train.groups, train.weights)
    model = LabelModel(random_state=seed).fit(train.votes, sample_weight=train.weights / size[train.groups] * 1000.0)
    return lambda target: _of_patterns(target, model)


def _label_model_target(train: LabeledRows, seed: int) -> Scorer:  # noqa: ARG001 - learns from the target alone
    def score(target: Rows) -> Floats:
        model = LabelModel(random_state=seed).fit(target.votes, sample_weight=target.weights)
        return _of_patterns(target, model)

    return score


def _latent_class(
    train: LabeledRows,
    seed: int,  # noqa: ARG001 - nothing is drawn
    estimates: Mapping[int, JudgeEstimate] | None = None,
) -> Scorer:
    fitted = fit_latent_class(train, estimates)

    def score(target: Rows) -> Floats:
        patterns, where = distinct_patterns(target.votes)
        weights = weigh(where, target.weights, len(patterns))
        return np.clip(fitted.adapt(patterns, weights), -20.0, 20.0)[where]

    return score


def _tilt(train: LabeledRows, seed: int) -> Scorer:
    base = _logistic_votes(train, seed)
    fitted = fit_tilt(base(train), train)
    return lambda target: fitted.adapt(base(target), target.weights)


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
    return lambda target: np.asarray(model.decision_function(standardized(target.scores[:, columns])))


def _forest_scores(train: LabeledRows, seed: int) -> Scorer:
    from sklearn.ensemble import RandomForestClassifier

    rows = _thinned(train, seed)
    standardized = fit_standardizer(rows.scores, rows.balanced())
    model = RandomForestClassifier(40, max_depth=6, max_features=0.3, min_weight_fraction_leaf=0.005, random_state=seed)
    model.fit(standardized(rows.scores), rows.labels, sample_weight=rows.balanced())
    return lambda target: logit(model.predict_proba(standardized(target.scores))[:, 1], clip=P_CLIP)


def _thinned(train: LabeledRows, seed: int) -> LabeledRows:
    """Return at most `FOREST_ROWS` rows of every dataset and class, drawn at random."""
    rng = np.random.default_rng(seed)
    code = 2 * train.groups + train.labels
    kept = [rng.permutation(np.flatnonzero(code == one))[:FOREST_ROWS] for one in np.unique(code)]
    return train.rows(np.sort(np.concatenate(kept)))


def _of_patterns(target: Rows, model: BaseEnsembler) -> Floats:
    """Return a vote model's log-odds, computed once a distinct pattern."""
    patterns, where = distinct_patterns(target.votes)
    return logit(model.predict_proba(patterns)[:, 1], clip=P_CLIP)[where]


MEMBERS: dict[str, Member] = {
    "best-score": _best_score,
    "forest-scores": _forest_scores,
    "forest-votes": _forest_votes,
    "label-model-source": _label_model_source,
    "label-model-target": _label_model_target,
    "latent-class": _latent_class,
    "logistic-scores": _logistic_scores,
    "logistic-top-scores": _logistic_top_scores,
    "logistic-votes": _logistic_votes,
    "tilt": _tilt,
}
"""Every member by name."""

ADAPTIVE = ("label-model-target", "latent-class", "tilt")
"""Members whose scorer learns from how the new dataset's votes are distributed."""

NEEDS_SCORES = ("best-score", "forest-scores", "logistic-scores", "logistic-top-scores")
NEEDS_THREE_VOTERS = ("label-model-source", "label-model-target")


def members_of(names: Sequence[str], train: LabeledRows) -> dict[str, Member]:
    """Return members by name; what one of them learns from each dataset alone is learned here, once for all fits."""
    members = {name: MEMBERS[name] for name in names}
    if "latent-class" in members:
        members["latent-class"] = partial(_latent_class, estimates=judge_estimates(train))
    return members


def members_for(n_voters: int, n_scorers: int) -> tuple[str, ...]:
    """Return the members that can be fitted on so many voters and scorers.

    Examples
    --------
    >>> members_for(2, 0)
    ('forest-votes', 'latent-class', 'logistic-votes', 'tilt')
    """
    return tuple(
        name
        for name in sorted(MEMBERS)
        if (n_scorers or name not in NEEDS_SCORES)
        and (n_voters >= 3 or name not in NEEDS_THREE_VOTERS)
        and (n_scorers > 1 or name != "logistic-top-scores")
    )
