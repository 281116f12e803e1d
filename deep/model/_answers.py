"""From the answers of judges, on scales of their own, to evidence on one axis: one monotone map a judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deep._util.checks import Floats, Mask, weigh
from deep._util.odds import logit
from deep._util.scales import Scale
from deep.records import VoteMatrix

# A score or its rank is held within [SHARE_CLIP, 1 - SHARE_CLIP]: an extreme score is no more than extreme.
SHARE_CLIP = 0.01

LEAST_SCALE = 1e-9
"""A judge whose answers vary less does not vary: what is left is rounding, and an answer divided by it blows up."""

# A judge that is mapped by ranks has at most so many places.
# A rank between two places is interpolated, and off by at most 1 in 500.
MAX_KNOTS = 500

MOST_VALUES = 40
"""A judge of more distinct answers, on a scale of no shares, is mapped by ranks: its levels have no names."""

# Reciprocal averaging takes so many rounds: the second changes values by a few hundredths, a third hardly any.
ROUNDS = 2

# Rows by which the value of a level is drawn to a straight line: so a level that hardly occurs borrows from others.
PSEUDO_ROWS = 5.0

# Places on a scale, ascending, and the shares that they stand for.
Knots = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class AnswerMap:
    """Maps the answers of each judge to evidence; no answer stays NaN.

    A place on a judge's scale stands for a share of a vote: 0 a vote of 0, 1 a vote of 1. Shares that are probabilities
    or ranks become log-odds. All are centred and scaled, votes to -1 and 1.

    Parameters
    ----------
    scales : tuple of Scale
        One a judge, in the order of the columns.
    knots : list of (places, shares)
        One a judge.
    log_odds : tuple of bool
        Of whose shares log-odds are taken.
    centre, scale : ndarray of float, shape (n_voters,)
        Taken from a share, or its log-odds, and then divided by: mean and standard deviation, or 0.5 and 0.5.

    Examples
    --------
    >>> answers = np.array([[0.0, 0.2], [0.5, 0.4], [1.0, 0.9], [1.0, np.nan]])
    >>> votes = VoteMatrix(answers, "abcd", ["grader", "scorer"], ["news"] * 4, [-1] * 4, scales=["0-1", "unit"])
    >>> AnswerMap.fit(votes)(votes.answers).round(1).tolist()
    [[-1.5, -1.0], [-0.3, -0.4], [0.9, 1.4], [0.9, nan]]
    """

    scales: tuple[Scale, ...]
    knots: list[Knots]
    log_odds: tuple[bool, ...]
    centre: Floats
    scale: Floats

    def __call__(self, answers: Floats) -> Floats:
        """Return the evidence of answers, given as places on the scales, shape (n_examples, n_voters)."""
        result = np.empty(answers.shape, order="F")
        for j, (pair, log_odds) in enumerate(zip(self.knots, self.log_odds, strict=True)):
            share = answers[:, j] if len(pair[0]) == 2 else np.interp(answers[:, j], *pair)
            share = logit(share, clip=SHARE_CLIP) if log_odds else share
            np.divide(share - self.centre[j], self.scale[j], out=result[:, j])
        return result

    @classmethod
    def fit(cls, votes: VoteMatrix, *, labeled: bool = True) -> Self:
        """Learn the maps from answers alone: no label is looked at.

        Shares of levels are their values by reciprocal averaging [1]_: the value of a level is the mean value that the
        other judges have where it is given, drawn to a straight line, and never falling.

        Parameters
        ----------
        votes : VoteMatrix
            Each dataset weighs the same.
        labeled : bool, default=True
            Whether labels weigh the judges: log-odds of shares are then taken, and all evidence has a standard
            deviation of 1. Else a share stands for itself.

        References
        ----------
        .. [1] M. O. Hill, "Reciprocal averaging: an eigenvector method of ordination", J. Ecology 61, 1973.
           https://doi.org/10.2307/2258931
        """
        assert votes.answers is not None  # where all judges vote there is nothing to map
        assert votes.scales is not None
        answers, k = votes.answers, votes.answers.shape[1]
        position = np.unique(votes.datasets.astype(str), return_inverse=True)[1]
        # Each dataset weighs the same, or the levels of a judge would be those of the largest dataset.
        weights = 1.0 / weigh(position, np.ones(len(answers)))[position]
        plain = [(np.array([0.0, 1.0]), np.array([0.0, 1.0]))] * k
        binary = np.array([scale.binary for scale in votes.scales])
        shares = np.array([scale.is_share for scale in votes.scales])
        levels = [
            None if binary[j] or shares[j] else _levels(answers[:, j], scale) for j, scale in enumerate(votes.scales)
        ]
        ranked = [level is None and not (binary[j] or shares[j]) for j, level in enumerate(levels)]
        knots = [_ranks(answers[:, j], weights) if is_ranked else plain[j] for j, is_ranked in enumerate(ranked)]
        log_odds = np.array([bool(share or rank) for share, rank in zip(shares, ranked, strict=True)])
        for _ in range(ROUNDS):
            evidence = cls(votes.scales, knots, tuple(log_odds), *_moments(answers, weights, knots, log_odds))(answers)
            answered = ~np.isnan(evidence)
            sums, counts = np.where(answered, evidence, 0.0).sum(axis=1), answered.sum(axis=1)
            for j, level in enumerate(levels):
                if level is None:
                    continue
                others = counts - answered[:, j]
                both = answered[:, j] & (others > 0)
                mean = (sums[both] - evidence[both, j]) / others[both]
                knots[j] = _level_values(level, answers[both, j], mean, weights[both] / weights.mean())
        if not labeled:
            half = np.full(k, 0.5)
            return cls(votes.scales, knots, (False,) * k, half, half)
        centre, scale = _moments(answers, weights, knots, log_odds)
        centre[binary], scale[binary] = 0.5, 0.5
        return cls(votes.scales, knots, tuple(log_odds.tolist()), centre, scale)


def _moments(answers: Floats, weights: Floats, knots: Sequence[Knots], log_odds: Mask) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the mapped answers of each judge."""
    k = answers.shape[1]
    values = AnswerMap((), list(knots), tuple(log_odds), np.zeros(k), np.ones(k))(answers)
    answered = ~np.isnan(values)
    total = np.maximum((answered * weights[:, None]).sum(axis=0), 1e-12)
    centre = (np.where(answered, values, 0.0) * weights[:, None]).sum(axis=0) / total
    apart = np.where(answered, values - centre, 0.0)
    scale = np.sqrt((apart**2 * weights[:, None]).sum(axis=0) / total)
    return centre, np.where(scale > LEAST_SCALE, scale, 1.0)


def _levels(column: Floats, scale: Scale) -> Floats | None:
    """Return the levels of a judge, ascending: its answers and the whole steps of its scale; None where too many."""
    result = np.unique(column[~np.isnan(column)])
    if len(result) > MOST_VALUES:
        return None
    return np.unique(np.concatenate([result, np.linspace(0.0, 1.0, scale.n_levels or 2)]))


def _level_values(levels: Floats, column: Floats, mean: Floats, weights: Floats) -> Knots:
    """Return the shares of levels by the mean evidence of the others where they are given."""
    from sklearn.isotonic import isotonic_regression  # which a model that is read does without

    where = np.searchsorted(levels, column)
    size = weigh(where, weights, len(levels))
    total = size.sum()
    if total <= 0:
        return levels, levels
    at = [float(weights @ values) / total for values in (column, mean)]
    apart = column - at[0]
    slope = max(float((weights * apart) @ (mean - at[1])) / max(float((weights * apart) @ apart), 1e-12), 0.0)
    line = at[1] + slope * (levels - at[0])
    value = (weigh(where, weights * mean, len(levels)) + PSEUDO_ROWS * line) / (size + PSEUDO_ROWS)
    value = isotonic_regression(value, sample_weight=size + PSEUDO_ROWS)
    span = value[-1] - value[0]
    return (levels, (value - value[0]) / span) if span > LEAST_SCALE else (levels, levels)


def _ranks(column: Floats, weights: Floats) -> Knots:
    """Return places and the shares they stand for: their ranks among all rows."""
    answered = ~np.isnan(column)
    values, where = np.unique(column[answered], return_inverse=True)
    weight = weigh(where, weights[answered])
    # Ties get the middle of the ranks that they share.
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    if len(values) > MAX_KNOTS:
        knots = np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], MAX_KNOTS)))
        values, middle = values[knots], middle[knots]
    return values, middle
