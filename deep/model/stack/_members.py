"""The members of the stack: ways to turn the judges' votes and scores into one log-odds a row.

A member is fitted on labeled datasets and returns a scorer. None looks at how the votes of a new dataset are
distributed: docs/decisions/0011-one-model.md says what those that did were worth.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from deep._util.checks import ROWS_AT_ONCE, Floats, Positions, weigh
from deep._util.columns import Hashes, mixed
from deep.ensembles import RandomForest
from deep.model.linear import LabeledRows, fit_best_judge, fit_majority, fit_ridge
from deep.model.score import ScoreForest, Scorer, ScoreSum, Trees, VoteForest, VoteSum, fit_standardizer, strongest

Member = Callable[[LabeledRows, int], Scorer]
"""From labeled datasets and a seed to a scorer."""

N_TOP = 4
"""How many scorers the member of few scores looks at."""

FOREST_ROWS = 300
"""Most rows of a dataset and class that the forest on scores is grown on."""


def _forest_votes(train: LabeledRows, seed: int) -> Scorer:
    model = RandomForest(100, max_depth=5, random_state=seed)
    model.fit(train.votes, train.labels, sample_weight=train.balanced())
    return VoteForest(Trees.from_sklearn([one.tree_ for one in model.trees_], lambda tree: tree.value[:, 0, 0]))


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
    "best-judge": lambda train, _: VoteSum(fit_best_judge(train)),
    "best-score": lambda train, _: _linear_scores(train, strongest(train, 1)),
    "forest-scores": _forest_scores,
    "forest-votes": _forest_votes,
    "logistic-scores": lambda train, _: _linear_scores(train, list(range(train.scores.shape[1]))),
    "logistic-top-scores": lambda train, _: _linear_scores(train, strongest(train, N_TOP)),
    "majority": lambda train, _: VoteSum(fit_majority(train)),
    "ridge-votes": lambda train, _: VoteSum(fit_ridge(train)),
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


MOST_ROWS = 400_000
"""Rows with scores that a stack is fitted on as they are; of more it takes a weighted sample of about so many.

A logistic regression of d coefficients on a sample of m rows loses about d / 2m of log loss more than on all rows: 3e-5
at 23 scorers. `benchmarks/scores_at_scale.py --proof` measures it on real scores."""


def sample_rows(train: LabeledRows, most: int = MOST_ROWS) -> LabeledRows:
    """Return rows whose cost is bounded: all of them, or of each dataset and class a weighted sample.

    Equal rows are merged first. Every dataset x class then keeps an equal share of `most` by priority sampling [1]_:
    the rows of largest weight / u, where u in (0, 1] is a hash of what a row holds; a row kept weighs what it did, or
    the first priority left out if that is more. The sample depends neither on the order of rows nor on a seed, a row of
    weight w is w rows, and each dataset x class weighs in sum what it did.

    Parameters
    ----------
    train : LabeledRows
        Rows without scores are returned as they are: those are merged to cells.
    most : int
        Rows above which they are sampled.

    References
    ----------
    .. [1] Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset sums", J. ACM 54 (2007).
       https://doi.org/10.1145/1314690.1314696

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, groups = rng.integers(0, 2, 9_000).astype(np.int8), rng.integers(0, 3, 9_000)
    >>> rows = LabeledRows(y[:, None], rng.random((9_000, 1)), np.ones(9_000), y, groups)
    >>> few = sample_rows(rows, 600)
    >>> len(few.votes), round(float(few.weights.sum()), 6)
    (600, 9000.0)
    """
    if not train.scores.shape[1] or train.weights.sum() <= most:
        return train
    hashes = row_hashes(train)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    first = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    kept, hashes, weights = order[first], hashes[first], np.add.reduceat(train.weights[order], first)
    del order, first  # each as large as a column of the rows
    stratum = 2 * train.groups[kept] + train.labels[kept]
    share = int(most // len(np.unique(stratum)))
    priority = (hashes >> np.uint64(11)).astype(np.float64)
    priority += 1
    np.divide(weights, priority, out=priority)
    priority *= 2.0**53
    chosen = [_prior(np.flatnonzero(stratum == code), weights, priority, share) for code in np.unique(stratum)]
    at, found = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    sizes = weigh(stratum, weights)
    scale = sizes / np.maximum(weigh(stratum[at], found, len(sizes)), np.finfo(float).tiny)
    return replace(train.rows(kept[at]), weights=found * scale[stratum[at]])


def _prior(at: Positions, weights: Floats, priority: Floats, share: int) -> tuple[Positions, Floats]:
    """Return the positions of one stratum that are kept, and their weights."""
    if len(at) <= share:
        return at, weights[at]
    order = at[np.argsort(-priority[at], kind="stable")]
    kept, threshold = order[:share], priority[order[share]]
    return kept, np.maximum(weights[kept], threshold)


def row_hashes(rows: LabeledRows) -> Hashes:
    """Return a 64-bit hash of each row, its weight aside; NaN is NaN, and -0 is 0."""
    blocks = (
        rows.rows(np.arange(at, min(at + ROWS_AT_ONCE, len(rows.votes))))
        for at in range(0, len(rows.votes), ROWS_AT_ONCE)
    )
    return np.concatenate([_block_hashes(block) for block in blocks])


def _block_hashes(rows: LabeledRows) -> Hashes:
    found = mixed((2 * rows.groups.astype(np.int64) + rows.labels).view(np.uint64))
    for column in rows.votes.T:
        found = mixed(found ^ (column.astype(np.int64) + 2).view(np.uint64))
    for column in rows.scores.T:
        plain = np.where(np.isnan(column), np.nan, column) + 0.0
        found = mixed(found ^ plain.view(np.uint64))
    return found


def sample_note(n: int) -> str:
    """Return the sentence that says that a stack was fitted on a sample.

    Examples
    --------
    >>> sample_note(10_000_000)[:65]
    'The stack was fitted on a weighted sample of about 400,000 of the'
    """
    return (
        f"The stack was fitted on a weighted sample of about {MOST_ROWS:,} of the {n:,} rows with scores, drawn from "
        "each dataset and class: that costs about 3e-5 of log loss at 23 scorers."
    )
