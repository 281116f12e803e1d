"""A weighted sample of rows with soft scores, where there are more of them than the stack's accuracy needs."""

from dataclasses import replace

import numpy as np

from deep._checks import ROWS_AT_ONCE, Floats, Positions, weigh
from deep._hashes import Hashes, mixed
from deep.model.linear import LabeledRows

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
