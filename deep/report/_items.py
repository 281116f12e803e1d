"""The items of the browser: the most telling ones and a stratified sample, small enough for a page."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Positions
from deep.records import ABSTAIN
from deep.report._material import ScoredVotes, vote_share

MOST_ITEMS = 12_000
"""Items that a page holds."""

TELLING = 200
"""Items of each kind that are there for certain: where judges disagree most, where P and label disagree most."""


CERTAIN = 0.0001
"""The least P, and the least 1 - P, that a page holds."""


def sample_sentence(shown: int, n: int) -> str:
    """Return a sentence on how the items of a page were chosen."""
    if shown == n:
        return f"All {n:,} items are here."
    return (
        f"This page holds a SAMPLE: {shown:,} of {n:,} items. Those on which judges disagree most, and those on which "
        "P and label disagree most, are here for certain; the others are drawn at random within each dataset, label "
        "and decision, in proportion. Shares among these items are not those of all."
    )


def disagreement(scored: ScoredVotes) -> Floats:
    """Return the share of the smaller side among the votes on each item, between 0 and a half."""
    share = vote_share(scored.votes.votes)
    cast = (scored.votes.votes != ABSTAIN).sum(axis=1)
    return np.where(cast > 0, np.minimum(share, 1 - share), 0.0)


def contradiction(scored: ScoredVotes) -> Floats:
    """Return how far P lies from the label of each item; 0 without a label."""
    return np.where(scored.labeled, np.abs(scored.p - scored.votes.labels), 0.0)


def order_of(scored: ScoredVotes, random_state: int = 0) -> Positions:
    """Return all items, the telling ones first and then those of a stratified sample of any size."""
    rng = np.random.default_rng(random_state)
    n = len(scored.p)
    shuffled = rng.permutation(n)
    telling = [_largest(disagreement(scored), shuffled), _largest(contradiction(scored), shuffled)]
    strata = _strata(scored)[shuffled]
    by_stratum = np.argsort(strata, kind="stable")
    _, size = np.unique(strata, return_counts=True)
    share = np.empty(n)
    share[by_stratum] = np.concatenate([np.arange(count) / count for count in size]) if n else []
    sample = shuffled[np.argsort(share, kind="stable")]
    every = np.concatenate([*telling, sample])
    _, first = np.unique(every, return_index=True)
    return every[np.sort(first)]


def _largest(values: Floats, shuffled: Positions) -> Positions:
    """Return the items of the largest positive values, ties in the order of `shuffled`."""
    order = shuffled[np.argsort(-values[shuffled], kind="stable")][:TELLING]
    return order[values[order] > 0]


def _strata(scored: ScoredVotes) -> Positions:
    _, dataset = np.unique(scored.votes.datasets.astype(str), return_inverse=True)
    return np.asarray(dataset * 6 + (scored.votes.labels + 1) * 2 + scored.decided, dtype=np.intp)


def item_columns(scored: ScoredVotes, rows: Positions) -> dict[str, object]:
    """Return the items as columns of JSON values: ids, datasets, labels, P with its bounds, and votes as a string."""
    votes = scored.votes.rows(rows)
    names = list(votes.dataset_names)
    at = {name: i for i, name in enumerate(names)}
    return {
        "voters": list(votes.voter_names),
        "datasets": names,
        "id": votes.example_ids.tolist(),
        "dataset": [at[name] for name in votes.datasets],
        "label": votes.labels.tolist(),
        "p": _chances(scored.p[rows]),
        "low": _chances(scored.low[rows]),
        "high": _chances(scored.high[rows]),
        "decided": scored.decided[rows].astype(int).tolist(),
        "split": _rounded(disagreement(scored)[rows]),
        "votes": list(_marks(votes.votes)),
    }


def _rounded(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 4) for value in values]


def _chances(values: Floats) -> list[float | None]:
    """Return probabilities that rounding makes neither 0 nor 1."""
    return _rounded(np.clip(values, CERTAIN, 1 - CERTAIN))


def _marks(votes: npt.NDArray[np.int8]) -> Iterator[str]:
    """Yield a character a judge: 1, 0, or - where there is no vote."""
    signs = np.array(["-", "0", "1"])[votes + 1]
    yield from ("".join(row) for row in signs.tolist())
