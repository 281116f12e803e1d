"""Fits without labels: majority and Dawid-Skene, averaged by how far halves of the judges agree by either."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from deep._util import checks
from deep._util.checks import AnyVotes, Floats, Mask, Positions, RandomState, Weights
from deep._util.odds import expit, logit
from deep.features import Linear
from deep.model import _consensus
from deep.model._consensus import MAX_SPARSE_COVERAGE, MIN_JUDGES, ErrorRates, JudgeClusters, Panel
from deep.model._prior import PriorEstimate

# Correlation of two judges' errors that is assumed of sparse and of dense panels, since votes alone cannot show an
# error that all judges share. However many they are, judges are then worth at most 2.5 or 2.1 independent ones; panels
# of LLM judges have been found to be worth about two (see `deep.features.effective_votes`).
ERROR_CORRELATION = (0.4, 0.47)

# The root mean square of log-odds, at most, of sparse and of dense panels.
# People and rules that meet on an item by chance, or where a rule applies, have not been found to be right more often
# than 2.5 says. LLM judges read every item, and what misleads one misleads the next: agreement beyond 1.6 was their own
# on seven of eight panels. docs/decisions/0044 has the figures, and the panel on which it was the label.
MAX_EFFECTIVE_JUDGES = (2.5, 1.6)

# The share of items that an average judge votes on, from which on a panel is dense. Below `MAX_SPARSE_COVERAGE` it is
# sparse, and between the two assumptions pass from the one to the other in a straight line.
MIN_DENSE_COVERAGE = 0.9

# How often the judges are cut at random into two halves that are compared: more splits take longer, fewer are noisier.
# Fifty are decision 12's.
N_SPLITS = 50

# Overlap from which on two judges are named as voting alike, and kept in the same half.
MIN_COPY_OVERLAP = 0.75

# Variances of the intercept and of the slope by which log-odds may be off on a dataset without labels.
MISFIT_VARIANCES = (1.0, 0.15)

# The 95 % quantile of the normal distribution: intervals have level 0.9.
Z_90 = 1.6448536269514722

# A judge whose rates of votes for 1 in the two classes differ by less hardly tells them apart: chance has a gap of 0.
MAX_CARELESS_RATE_GAP = 0.3

# Shares of votes cast by such judges, and of items decided against the majority, from which on both are warned of.
MAX_CARELESS_VOTE_SHARE, MAX_SHARE_AGAINST_MAJORITY = 0.3, 0.03

# The most judges that a warning names, so that it stays a line or two.
N_NAMES_SHOWN = 6

# A fit without labels on fewer items is warned of. The number was chosen; no measurement is known: it holds no fit
# back.
MIN_ITEMS = 30
# So is a fit on fewer votes an item in the mean: two judges cannot show which of them errs.
MIN_VOTES = 3

# From this weight on, the better of the two aggregators decides alone: the weight is rounded to 0 or 1.
MIN_DECISIVE_WEIGHT = 0.9


@dataclass(frozen=True, eq=False)
class UnlabeledFit:
    """A sum over votes and a prior, learned without any label.

    Parameters
    ----------
    linear : Linear
        Log-odds at equal class weights.
    prior : PriorEstimate
        The share of consistent items, with an interval at level 0.9.
    method : str
        ``"majority"``, ``"dawid-skene"``, or ``"average"`` where both have a say.
    warnings : tuple of str
        What makes the result less sure than it looks, a sentence each.
    """

    linear: Linear
    prior: PriorEstimate
    method: str
    warnings: tuple[str, ...]


def fit_unlabeled(
    votes: npt.ArrayLike,
    *,
    sample_weight: Weights = None,
    voter_names: Sequence[str] | None = None,
    groups: npt.ArrayLike | None = None,
    random_state: RandomState = 0,
    are_shares: bool = False,
) -> UnlabeledFit:
    """Learn how to weigh judges from their votes alone.

    Two aggregators are averaged: the majority, and Dawid-Skene (each judge's rates of either error, by a few rounds
    of expectation-maximization from the majority), in which no judge has a weight below 0. Which of them to believe
    cannot be seen from the fit of either. But judges who err in different ways agree on nothing but the label, so
    the better aggregator is the one by which two halves of the judges agree more: Dawid-Skene weighs as much as
    random halves speak for it.

    Parameters
    ----------
    votes : array-like of shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote. With `are_shares` a number between 0 and 1 is that share of a vote of
        1, and what is left of a vote of 0; NaN is none.
    sample_weight : array-like of shape (n_examples,), optional
        How often each row counts; default 1 each.
    voter_names : sequence of str, optional
        For the warnings; default: the columns of a data frame, else "0", "1", ...
    groups : array-like of shape (n_examples,), optional
        The document of each row: rows of one are not independent. Default: each row its own.
    random_state : int or numpy Generator, default=0
        Draws the halves.
    are_shares : bool, default=False
        Whether some judges give grades or scores: the sum is then over evidence, twice a share less 1.

    Returns
    -------
    Unlabeled

    Raises
    ------
    InputError
        Votes or weights are out of range, lengths differ, or there is no vote.

    Notes
    -----
    Voters that vote alike on every row count as one judge, and judges who agree more than their rates explain count
    for less. All log-odds are divided by Kish's design effect 1 + (k - 1) r for k votes an item, and further where
    their root mean square is above a bound; r is 0.4 and the bound 2.5 where judges vote on few items each, 0.47 and
    1.6 where each votes on nearly all, as LLM judges do. Judges that abstain by what they see, as rules do, are told
    from a crowd, whose items are handed out: whether they vote goes with what others vote, and the majority then minds
    the share of class 1. The prior is the mean P; its interval allows log-odds to be off by an intercept of variance 1
    and a slope of variance 0.15.

    Examples
    --------
    >>> rows = [[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    >>> result = fit_unlabeled(rows, sample_weight=[40, 10, 10, 10, 30])
    >>> result.method, result.warnings
    ('average', ())
    >>> result.linear.log_odds(np.array([[1, 1, 1, 1], [1, 0, 0, 1], [-1, -1, -1, 1]])).round(1).tolist()
    [1.7, 0.0, 0.3]
    >>> [round(share, 2) for share in (result.prior.low, result.prior.estimate, result.prior.high)]
    [0.21, 0.5, 0.78]
    """
    matrix: AnyVotes
    if are_shares:
        matrix = np.nan_to_num(checks.as_floats(votes, "votes"), nan=-1.0)
    else:
        matrix = checks.check_votes(votes, name="votes", voters=checks.column_names(votes))
    weights = checks.check_sample_weight(sample_weight, len(matrix))
    columns = checks.column_names(votes) if voter_names is None else voter_names
    names = [str(name) for name in (range(matrix.shape[1]) if columns is None else columns)]
    checks.check_consistent_length(np.asarray(names), matrix.shape[1], "voter_names")
    documents = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if documents is not None:
        checks.check_consistent_length(documents, len(matrix), "groups")
    has_vote = (weights > 0) & (matrix >= 0).any(axis=1)
    checks.check_some_votes(matrix[has_vote])
    matrix, weights = matrix[has_vote], weights[has_vote]
    judges = JudgeClusters.of(matrix, weights)
    alike = _consensus.pairwise_overlap(judges.panel)
    panel = _consensus.count_copies_as_one(judges.panel, alike)
    # Judges who vote alike are kept in the same half.
    blocks = np.asarray(connected_components(alike > MIN_COPY_OVERLAP, directed=False)[1])
    trust = _compare_halves(panel, blocks, np.random.default_rng(random_state))
    rates = _consensus.dawid_skene(panel)
    mixed = judges.expand(_average_log_odds(panel, rates, trust.weight))
    evidence = np.where(matrix < 0, np.nan, 2 * matrix - 1) if are_shares else matrix
    prior = _estimate_prior(mixed.log_odds(evidence), weights, None if documents is None else documents[has_vote])
    linear = Linear(mixed.intercept - float(logit(prior.estimate)), mixed.ones, mixed.zeros)
    doubts = [*trust.warnings(), *(_careless_judge_warnings(panel, rates) if trust.weight > 0.5 else ())]
    warnings = [*_few_votes_warnings(judges.panel), *_copy_warnings(judges, panel, blocks, names), *doubts]
    return UnlabeledFit(linear, prior, trust.method, tuple(warnings))


@dataclass(frozen=True)
class _DawidSkeneTrust:
    """How far Dawid-Skene is believed.

    Parameters
    ----------
    weight : float
        In [0, 1]; what is left is the majority's.
    by_dawid_skene, by_majority : float or None
        Mean correlation of halves of the judges by either; None where judges are too few to be split.
    """

    weight: float
    by_dawid_skene: float | None = None
    by_majority: float | None = None

    @property
    def method(self) -> str:
        return {0.0: "majority", 1.0: "dawid-skene"}.get(self.weight, "average")

    def warnings(self) -> Iterator[str]:
        if self.weight < 0.5 and self.by_majority is not None:
            yield (
                "Dawid-Skene fails or gains nothing here: two halves of the judges correlate at "
                f"{self.by_dawid_skene:.2f} by it, at {self.by_majority:.2f} by majority. It has "
                f"{100 * self.weight:.0f} % of the weight."
            )


# Coverage below which the votes of half a panel are multiplied without the empty cells: of 762 judges of whom an item
# has 15 that takes a twentieth of the time.
MAX_COVERAGE_FOR_SPARSE = 0.1


def _compare_halves(panel: Panel, blocks: Positions, rng: np.random.Generator) -> _DawidSkeneTrust:
    """Weigh Dawid-Skene by how far random halves of the judges agree more by it than by majority."""
    n = int(blocks.max()) + 1
    if len(blocks) < MIN_JUDGES:
        return _DawidSkeneTrust(0.0)
    if n < 4:
        return _DawidSkeneTrust(0.5)
    # Blocks and not judges are drawn: copies in both halves would agree whatever the label is.
    halves = [np.isin(blocks, rng.permutation(n)[: n // 2]) for _ in range(N_SPLITS)]
    if _consensus.mean_coverage(panel) < MAX_COVERAGE_FOR_SPARSE:
        panel = panel.thinned()
    # At 1 Fisher's transform is infinite, and one pair of equal halves would decide alone.
    result = np.clip([_correlations_of_halves(panel, half) for half in halves], -0.99, 0.99)
    gains = np.arctanh(result[:, 0]) - np.arctanh(result[:, 1])
    # The second term is the standard error of Fisher's transform: few items make any difference unsure.
    spread = np.hypot(gains.std(), 1 / np.sqrt(panel.weights.sum()))
    by_dawid_skene, by_majority = result.mean(axis=0).tolist()
    # Where it has lost its way, halves may go astray so differently that the spread alone would excuse it.
    excused = np.clip(by_dawid_skene / max(by_majority, 1e-9), 0.0, 1.0)
    weight = float(ndtr(2 * gains.mean() / spread) * excused)
    weight = float(np.round(weight)) if max(weight, 1 - weight) >= MIN_DECISIVE_WEIGHT else weight
    return _DawidSkeneTrust(weight, by_dawid_skene, by_majority)


def _correlations_of_halves(panel: Panel, half: Mask) -> tuple[float, float]:
    """Return the correlation of two halves of the judges by Dawid-Skene and by majority."""
    sides = [panel.judges(half), panel.judges(~half)]
    both = (sides[0].cast.sum(axis=1) > 0) & (sides[1].cast.sum(axis=1) > 0)
    if not both.any():
        return 0.0, 0.0
    sides = [side.rows(both) for side in sides]
    fitted = [side.sum(_consensus.dawid_skene(side).linear(side.shares)) for side in sides]
    weights = sides[0].weights
    return _pearson(fitted[0], fitted[1], weights), _pearson(sides[0].margin, sides[1].margin, weights)


def _pearson(first: Floats, second: Floats, weights: Floats) -> float:
    first, second = first - np.average(first, weights=weights), second - np.average(second, weights=weights)
    scale = np.sqrt((weights @ first**2) * (weights @ second**2))
    return float(weights @ (first * second) / scale) if scale > 0 else 0.0


def _average_log_odds(panel: Panel, rates: ErrorRates, weight: float) -> Linear:
    """Return the average of majority and Dawid-Skene on a common scale, divided by the design effect."""
    members = (rates.linear(panel.shares), _consensus.majority_log_odds(panel))
    shares = (weight, 1 - weight)
    # Log-odds that are small say that nothing was found, and are not blown up.
    sizes = [max(float(np.sqrt(panel.mean(panel.sum(member) ** 2))), 1.0) for member in members]
    n_votes = max(panel.mean(panel.cast @ panel.shares), 1.0)
    density = (_consensus.mean_coverage(panel) - MAX_SPARSE_COVERAGE) / (MIN_DENSE_COVERAGE - MAX_SPARSE_COVERAGE)
    correlation, largest = (np.interp(density, (0, 1), ends) for ends in (ERROR_CORRELATION, MAX_EFFECTIVE_JUDGES))
    # Kish's design effect: n votes whose errors correlate by r are worth n / (1 + (n - 1) r).
    scale = min(np.dot(shares, sizes) / (1 + (n_votes - 1) * correlation), largest)
    factors = [scale * share / size for share, size in zip(shares, sizes, strict=True)]
    parts = [
        sum(factor * getattr(member, name) for factor, member in zip(factors, members, strict=True))
        for name in ("intercept", "ones", "zeros")
    ]
    return Linear(*parts)


def _estimate_prior(log_odds: Floats, weights: Floats, documents: Positions | None) -> PriorEstimate:
    """Return the mean P, with an interval for which rows were drawn and for log-odds that are off."""
    p = expit(log_odds)
    mean = float(np.average(p, weights=weights))
    # Without documents a weight counts rows; with them, rows of one document add up.
    squares = weights * (p - mean) ** 2 if documents is None else checks.bincount(documents, weights * (p - mean)) ** 2
    sampling = Z_90 * np.sqrt(squares.sum()) / weights.sum()
    reach = Z_90 * np.sqrt(MISFIT_VARIANCES[0] + MISFIT_VARIANCES[1] * log_odds**2)
    low, high = (np.average(expit(log_odds + sign * reach), weights=weights) for sign in (-1, 1))
    low, high = mean - np.hypot(mean - low, sampling), mean + np.hypot(high - mean, sampling)
    return PriorEstimate(mean, max(float(low), 0.0), min(float(high), 1.0))


def _careless_judge_warnings(panel: Panel, rates: ErrorRates) -> Iterator[str]:
    """Warn where few judges are followed against most votes, which is wrong if those few share an error."""
    careless = rates.hit - rates.alarm < MAX_CARELESS_RATE_GAP
    cast = panel.weights @ panel.cast
    by_careless = float(cast[careless].sum() / cast.sum())
    against = panel.mean(((panel.sum(rates.linear(panel.shares)) >= 0) != (panel.margin >= 0)) & (panel.margin != 0))
    if by_careless >= MAX_CARELESS_VOTE_SHARE and against >= MAX_SHARE_AGAINST_MAJORITY:
        yield (
            f"Weak judges cast {100 * by_careless:.0f} % of the votes, so the others overrule the majority on "
            f"{100 * against:.0f} % of the items. If those share an error, the majority is right: label some of "
            "these items."
        )


def _few_votes_warnings(panel: Panel) -> Iterator[str]:
    """Warn where items, or votes an item, are too few to learn from agreement."""
    n_items, n_judges = panel.weights.sum(), panel.cast.shape[1]
    n_votes = panel.mean(panel.cast.sum(axis=1))
    if n_items < MIN_ITEMS:
        yield f"Only {n_items:g} items have votes, too few to learn which judge is better."
    if n_judges < MIN_JUDGES:
        yield (
            f"Fewer than {MIN_JUDGES} different judges cannot show how often they err. "
            "deep assumes that they are right on 3 of 4 items."
        )
    elif n_votes < MIN_VOTES:
        yield f"An item has {n_votes:.1f} votes on average, too few to check one judge by another."


def _copy_warnings(judges: JudgeClusters, panel: Panel, blocks: Positions, names: list[str]) -> Iterator[str]:
    """Yield a warning for each block of voters that vote alike."""
    block = np.append(blocks, -1)[judges.judge]
    for result in np.unique(block[block >= 0]):
        voters = np.flatnonzero(block == result)
        if len(voters) > 1:
            alike, worth = _join_names([names[i] for i in voters]), panel.shares[blocks == result].sum()
            if len(voters) - worth < 0.5:
                yield f"{alike} err on the same items, so their agreement counts for less."
            else:
                yield f"{alike} vote almost alike: {len(voters)} count as {worth:.1f}."
    constant = np.flatnonzero(judges.judge < 0)
    if len(constant):
        yield f"{_join_names([names[i] for i in constant])}: no vote, or the same vote for every item; ignored."


def _join_names(names: list[str]) -> str:
    first = [*names[:N_NAMES_SHOWN], f"{len(names) - N_NAMES_SHOWN} more"] if len(names) > N_NAMES_SHOWN else names
    return " and ".join([", ".join(first[:-1]), first[-1]] if len(first) > 1 else first)
