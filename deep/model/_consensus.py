"""Error rates of judges, and of pairs that err together, from votes alone."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from deep._util.checks import AnyVotes, Floats, Mask, Positions, bincount, is_votes
from deep._util.odds import expit, logit
from deep.features import Linear, distinct_patterns, distinct_rows

# Rounds of expectation-maximization. Most of the gain over the vote shares, where it starts, comes in the first few;
# later rounds follow whatever the judges share, be it the label or an error. Four are decision 12's.
N_EM_ROUNDS = 4

# Votes, in either class, by which a judge's rates are pulled to the rates of the panel. Chosen; no measurement is
# known. More make judges alike; fewer let a judge of few votes have extreme rates.
PSEUDO_VOTES = 2.0

# The rate of right votes, in either class, to which one vote pulls the rates of the panel. So a panel of very few votes
# starts as one that is better than chance. Chosen; no measurement is known.
PANEL_RATE = 0.7

# No vote is taken to be rarer than this in either class, so that no judge decides alone. The log-odds of one vote are
# within 4.6 then. Chosen; no measurement is known.
MIN_VOTE_RATE = 0.01

# Judges too few to be held against one another are taken to be right on so many items.
ASSUMED_ACCURACY = 0.75

# The least and the most that judges are taken to be right on average.
ACCURACY_RANGE = (0.55, 0.99)

# Chi-squared for a judge (1 by chance) from which on judges are taken to abstain by what they see: whether one votes
# goes with what the others vote. In a crowd, where items are handed out, it does not (1.6 on RTE); labeling functions
# have 36 to 18,000.
BY_SIGHT = 10.0

# The share of items that an average judge votes on, below which it is silent where its rule does not apply. How often
# such judges vote 1 then tells which rules were written, more than how frequent class 1 is.
MAX_SPARSE_COVERAGE = 0.4

# How far the share of class 1 follows the votes of sparse judges, in log-odds from a half. A quarter is what 18 panels
# choose by log loss (decision 12).
SPARSE_PRIOR_WEIGHT = 0.25

# The least and the largest share of class 1 that the majority takes from votes. One class alone would have infinite
# log-odds.
SHARE_RANGE = (0.05, 0.95)

# No vote is taken to be rarer than this in either class where judges are sparse.
MIN_SPARSE_VOTE_RATE = 0.02

# Fewer judges than three cannot show how often each errs: two that differ do not say who is wrong.
MIN_JUDGES = 3

# Overlap, and share of equal votes, up to which two judges count in full, and from which on they count as one. Judges
# of one family overlap as well, and to take weight from all of them gains nothing on real panels: that they give nearly
# every item the same vote is what tells a copy.
OVERLAP_RAMP = (0.5, 0.75)
AGREEMENT_RAMP = (0.93, 0.96)

# Standard errors by which the share of equal votes must exceed those bounds. Three leave little to chance among many
# pairs. Chosen; no measurement is known.
SE_MARGIN = 3.0


@dataclass(frozen=True, eq=False)
class Panel:
    """Distinct rows of votes of judges that differ.

    Parameters
    ----------
    ones, zeros : ndarray of float, shape (n_patterns, n_judges)
        1 where the judge voted 1, and where it voted 0; an answer in between is a share of either.
    weights : ndarray of float, shape (n_patterns,)
        The weights of the rows of each pattern, added up.
    shares : ndarray of float, shape (n_judges,)
        As how much of a judge each counts, in (0, 1].
    """

    ones: Floats
    zeros: Floats
    weights: Floats
    shares: Floats

    @classmethod
    def of(cls, patterns: AnyVotes, weights: Floats) -> "Panel":
        """Return the panel in which every judge counts in full; an answer in between is a vote of both."""
        if is_votes(patterns):
            ones, zeros = ((patterns == vote).astype(np.float64) for vote in (1, 0))
        else:
            ones, zeros = (np.where(patterns < 0, 0.0, share) for share in (patterns, 1.0 - patterns))
        return cls(ones, zeros, weights, np.ones(patterns.shape[1]))

    @cached_property
    def cast(self) -> Floats:
        """Return 1 where a judge voted."""
        return self.ones + self.zeros

    @property
    def margin(self) -> Floats:
        """Return votes for 1 less votes for 0 by row."""
        return np.asarray((self.ones - self.zeros) @ self.shares)

    def judges(self, mask: Mask) -> "Panel":
        """Return some judges."""
        return Panel(self.ones[:, mask], self.zeros[:, mask], self.weights, self.shares[mask])

    def rows(self, mask: Mask) -> "Panel":
        """Return some rows."""
        return Panel(self.ones[mask], self.zeros[mask], self.weights[mask], self.shares)

    def thinned(self) -> "Panel":
        """Return the panel with votes as sparse arrays, which products and the choice of rows and judges take alike."""
        from scipy.sparse import csr_array

        ones, zeros = (cast("Floats", csr_array(votes)) for votes in (self.ones, self.zeros))
        return Panel(ones, zeros, self.weights, self.shares)

    def mean(self, values: Floats) -> float:
        """Return the weighted mean over rows."""
        return float(self.weights @ values / self.weights.sum())

    def sum(self, linear: Linear) -> Floats:
        """Return the log-odds of each row."""
        return np.asarray(linear.intercept + self.ones @ linear.ones + self.zeros @ linear.zeros)


@dataclass(frozen=True, eq=False)
class JudgeClusters:
    """Voters as judges: those that vote alike are one, those that give every item the same vote are none.

    Parameters
    ----------
    panel : Panel
        Votes of the judges, a column each, without the rows in which none votes.
    judge : ndarray of int, shape (n_voters,)
        Which judge of the panel each voter is; -1 for none.
    """

    panel: Panel
    judge: Positions

    @classmethod
    def of(cls, votes: AnyVotes, weights: Floats) -> "JudgeClusters":
        """Find the judges in rows that have votes, or shares of votes, -1 for none."""
        patterns, row = distinct_rows(votes)
        total = bincount(row, weights)
        # Those that do not give every row the same vote; where none does, those that vote at all. Where nobody voted 1,
        # a judge of zeros alone is like all others, and what it says counts as theirs does.
        varies = np.any(patterns != patterns[0], axis=0)
        has_both = (patterns == 1).any() and (patterns == 0).any()
        voters = np.flatnonzero(varies if has_both and varies.any() else (patterns >= 0).any(axis=0))
        columns: AnyVotes = patterns[:, voters].T.copy()
        if is_votes(columns):
            result = distinct_patterns(columns)[1]
        else:
            result = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
        distinct = patterns[:, voters[np.unique(result, return_index=True)[1]]]
        # Halves are drawn by position, which must depend neither on the order of voters nor on copies.
        order = np.lexsort(_fingerprints(distinct, total))
        judge = np.full(votes.shape[1], -1)
        judge[voters] = np.argsort(order)[result]
        panel = Panel.of(distinct[:, order], total)
        return cls(panel.rows(panel.cast.sum(axis=1) > 0), judge)

    def expand(self, linear: Linear) -> Linear:
        """Return the sum over voters, each judge's weight divided among the voters that it is."""
        counts = np.bincount(self.judge[self.judge >= 0], minlength=len(linear.ones))
        ones, zeros = (np.append(side / counts, 0.0)[self.judge] for side in (linear.ones, linear.zeros))
        return Linear(linear.intercept, ones, zeros)


def _fingerprints(patterns: AnyVotes, weights: Floats) -> Floats:
    """Return keys of each column that do not depend on the order of rows and columns, shape (n_keys, n_columns).

    Color refinement (Weisfeiler and Leman): rows are told apart by the columns that they have votes of, columns by
    the rows that they have votes on, twice. Votes turned round, all of them, change only the first half of the keys,
    at which `lexsort` looks last.
    """
    panel = Panel.of(patterns, weights / weights.sum())
    signs, same = panel.ones - panel.zeros, np.zeros((1, patterns.shape[1]))
    for _ in range(2):
        color = np.sqrt(1 + np.unique(same, axis=1, return_inverse=True)[1].ravel())
        signed = np.array([panel.margin, signs @ color]) * panel.weights
        unsigned = np.array([np.ones(len(signs)), panel.cast.sum(axis=1), panel.cast @ color]) * panel.weights
        same = np.round(np.vstack([signed @ signs, signed**2 @ panel.cast, unsigned @ panel.cast], dtype=float), 9)
    return np.vstack([np.round(np.vstack([signed @ panel.cast, unsigned @ signs]), 9), same])


@dataclass(frozen=True, eq=False)
class ErrorRates:
    """The error rates of judges and the share of class 1.

    Parameters
    ----------
    prior : float
        Share of class 1.
    hit, alarm : ndarray of float, shape (n_judges,)
        P(vote 1 | class 1), P(vote 1 | class 0), where the judge votes; ``hit >= alarm``.
    """

    prior: float
    hit: Floats
    alarm: Floats

    def linear(self, shares: Floats) -> Linear:
        """Return the log-odds of class 1 where judges err independently, each counted as its share."""
        ones, zeros = np.log(self.hit / self.alarm), np.log((1 - self.hit) / (1 - self.alarm))
        return Linear(float(logit(self.prior)), shares * ones, shares * zeros)


def dawid_skene(panel: Panel) -> ErrorRates:
    """Return Dawid-Skene's rates after a few rounds of expectation-maximization from the vote shares.

    Unlike `deep.ensembles.DawidSkene` it stops early, pulls rates to those of the panel, counts judges by their
    shares and takes none to vote against the label.
    """
    # The share of votes for 1 is the start: a random one could end with the classes turned round.
    posterior = (panel.margin / (panel.cast @ panel.shares) + 1) / 2
    rates = _maximization_step(panel, posterior)
    for _ in range(N_EM_ROUNDS - 1):
        rates = _maximization_step(panel, expit(panel.sum(rates.linear(panel.shares))))
    return rates


def _maximization_step(panel: Panel, posterior: Floats) -> ErrorRates:
    """Return the rates and the share of class 1 that explain the votes best, given P of each row."""
    in_one, in_zero = panel.weights * posterior, panel.weights * (1 - posterior)
    hits, hit_votes = in_one @ panel.ones, in_one @ panel.cast
    alarms, alarm_votes = in_zero @ panel.ones, in_zero @ panel.cast
    hit = _shrunk_rate(hits, hit_votes, panel.shares, PANEL_RATE)
    alarm = _shrunk_rate(alarms, alarm_votes, panel.shares, 1 - PANEL_RATE)
    # A judge that seems to vote against the label is taken for one that knows nothing: votes alone cannot say which
    # way round it is.
    either = (hits + alarms + PSEUDO_VOTES / 2) / (hit_votes + alarm_votes + PSEUDO_VOTES)
    hit, alarm = (np.where(hit < alarm, either, side) for side in (hit, alarm))
    hit, alarm = (np.clip(side, MIN_VOTE_RATE, 1 - MIN_VOTE_RATE) for side in (hit, alarm))
    return ErrorRates(float((in_one.sum() + 1) / (panel.weights.sum() + 2)), hit, alarm)


def _shrunk_rate(ones: Floats, cast: Floats, shares: Floats, start: float) -> Floats:
    """Return each judge's rate of votes for 1, pulled to the panel's."""
    mean = (shares @ ones + start) / (shares @ cast + 1)
    return np.asarray((ones + PSEUDO_VOTES * mean) / (cast + PSEUDO_VOTES))


def majority_log_odds(panel: Panel) -> Linear:
    """Return the log-odds by the count of votes, where all judges are equally often right.

    Where judges abstain by what they see (`BY_SIGHT`), the share of class 1 counts too, and the more, the more they
    abstain: items have few votes then. Where they are `MAX_SPARSE_COVERAGE`, they may be right in one class more often.
    """
    by_sight = _abstention_chi_squared(panel) > BY_SIGHT
    if by_sight and mean_coverage(panel) < MAX_SPARSE_COVERAGE:
        return _log_odds_by_class_rates(panel)
    # The accuracy by which equal judges that err independently would agree as often as these.
    pairs, accuracy = _equal_pair_shares(panel), ASSUMED_ACCURACY
    if pairs is not None:
        # Judges right with probability a agree on a^2 + (1 - a)^2 of the items, solved for a.
        accuracy = float(np.clip((1 + np.sqrt(max(2 * sum(pairs) - 1, 0.0))) / 2, *ACCURACY_RANGE))
    intercept = 0.0
    if by_sight:
        share = (_ones_share(panel) - 1 + accuracy) / (2 * accuracy - 1)
        intercept = (1 - mean_coverage(panel)) * float(logit(np.clip(share, *SHARE_RANGE)))
    return Linear.signed(intercept, np.log(accuracy / (1 - accuracy)) * panel.shares)


def _abstention_chi_squared(panel: Panel) -> float:
    """Return chi-squared, mean over judges, of whether a judge votes against what most others vote."""
    signs = (panel.ones - panel.zeros) * panel.shares
    others = signs.sum(axis=1)[:, None] - signs
    opposed = panel.weights[:, None] * (others != 0)
    n, n_votes = opposed.sum(axis=0), (opposed * panel.cast).sum(axis=0)
    share = (opposed * (others > 0)).sum(axis=0) / np.maximum(n, 1e-9)
    share_voted = (opposed * (others > 0) * panel.cast).sum(axis=0) / np.maximum(n_votes, 1e-9)
    variance = share * (1 - share) * (1 - n_votes / np.maximum(n, 1e-9))
    usable = (n_votes > 0) & (variance > 1e-9)
    return float((n_votes[usable] * (share_voted - share)[usable] ** 2 / variance[usable]).sum() / max(usable.sum(), 1))


def mean_coverage(panel: Panel) -> float:
    """Return the share of items that an average judge votes on."""
    return panel.mean(panel.cast.mean(axis=1))


def _ones_share(panel: Panel) -> float:
    """Return the share of votes that are 1."""
    return panel.mean(panel.ones @ panel.shares) / panel.mean(panel.cast @ panel.shares)


def _log_odds_by_class_rates(panel: Panel) -> Linear:
    """Return the log-odds of equal judges with a rate of their own in each class, by moments of single votes and pairs.

    Pairs tell the product of the variance of the class and the squared gap of the rates, so the share of class 1 is
    assumed: a quarter of the way from a half to that of the votes, no further than rates within bounds allow.
    """
    ones, pairs = _ones_share(panel), _equal_pair_shares(panel)
    if pairs is None:
        return Linear.signed(0.0, float(logit(ASSUMED_ACCURACY)) * panel.shares)
    spread = max(pairs[0] - ((1 + pairs[0] - pairs[1]) / 2) ** 2, 1e-4)
    low = -2 * np.log(max(1 - MIN_SPARSE_VOTE_RATE - ones, MIN_SPARSE_VOTE_RATE)) + np.log(spread)
    high = 2 * np.log(max(ones - MIN_SPARSE_VOTE_RATE, MIN_SPARSE_VOTE_RATE)) - np.log(spread)
    intercept = float(np.clip(SPARSE_PRIOR_WEIGHT * logit(ones), low, high) if low <= high else (low + high) / 2)
    share = float(expit(intercept))
    gap = np.sqrt(spread / (share * (1 - share)))
    hit, alarm = np.clip([ones + (1 - share) * gap, ones - share * gap], MIN_SPARSE_VOTE_RATE, 1 - MIN_SPARSE_VOTE_RATE)
    return Linear(intercept, np.log(hit / alarm) * panel.shares, np.log((1 - hit) / (1 - alarm)) * panel.shares)


def _equal_pair_shares(panel: Panel) -> tuple[float, float] | None:
    """Return the shares of pairs of votes on an item that are both 1, and both 0; None where nothing can be told."""
    ones, zeros = panel.ones @ panel.shares, panel.zeros @ panel.shares
    own = [side**2 @ panel.shares**2 for side in (panel.ones, panel.zeros)]
    pairs = panel.mean((ones + zeros) ** 2 - own[0] - own[1])
    if len(panel.shares) < MIN_JUDGES or pairs <= 0:
        return None
    return panel.mean(ones**2 - own[0]) / pairs, panel.mean(zeros**2 - own[1]) / pairs


def pairwise_overlap(panel: Panel) -> Floats:
    """Return how far each pair of judges votes alike beyond what their rates explain, shape (n_judges, n_judges).

    The correlation of their votes within the classes, as the rates imply the classes, less two standard errors, held
    within [0, 1]; 1 on the diagonal. The rates are those of a panel in which judges count for less the more their
    votes correlate, so that many who vote nearly alike do not set the rates by which they are judged.
    """
    both = _joint_vote_weight(panel)
    n, weighted = np.maximum(both, 1e-9), panel.weights[:, None] * panel.ones
    # By pair of judges, on the rows on which both vote: the covariance of the votes, and the variance of the one's.
    rate = weighted.T @ panel.cast / n
    covariance, variance = panel.ones.T @ weighted / n - rate * rate.T, rate * (1 - rate)
    correlation = _correlation_lower_bound(covariance, np.sqrt(variance * variance.T), both)
    # By the fourth power only judges that are nearly copies lose weight here, and a family of good judges hardly.
    rates = dawid_skene(_share_weight_among_copies(panel, correlation**4))
    gap = rates.hit - rates.alarm
    within = rates.prior * rates.hit * (1 - rates.hit) + (1 - rates.prior) * rates.alarm * (1 - rates.alarm)
    explained = rates.prior * (1 - rates.prior) * np.outer(gap, gap)
    return _correlation_lower_bound(covariance - explained, np.sqrt(np.outer(within, within)), both)


def count_copies_as_one(panel: Panel, alike: Floats) -> Panel:
    """Return the panel in which near copies count as one judge together, given the overlap of each pair."""
    n = np.maximum(_joint_vote_weight(panel), 1.0)
    equal = sum(side.T @ (panel.weights[:, None] * side) for side in (panel.ones, panel.zeros)) / n
    at_least = equal - SE_MARGIN * np.sqrt((equal * (1 - equal) + 1 / n) / n)  # the share of equal votes of each pair
    return _share_weight_among_copies(panel, _ramp(alike, *OVERLAP_RAMP) * _ramp(at_least, *AGREEMENT_RAMP))


def _ramp(values: Floats, low: float, high: float) -> Floats:
    """Return 0 up to `low`, 1 from `high` on, a straight line between; 1 on the diagonal."""
    result = np.clip((values - low) / (high - low), 0.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return result


def _share_weight_among_copies(panel: Panel, same: Floats) -> Panel:
    """Return the panel in which each judge counts as one over the judges, on the rows it votes on, that it is."""
    both = _joint_vote_weight(panel)
    total = (same * both / np.maximum(np.diag(both)[:, None], 1e-9)).sum(axis=1)
    return replace(panel, shares=1 / np.maximum(total, 1.0))


def _joint_vote_weight(panel: Panel) -> Floats:
    """Return the weight of the rows on which both of two judges vote."""
    return np.asarray(panel.cast.T @ (panel.weights[:, None] * panel.cast))


def _correlation_lower_bound(covariance: Floats, scale: Floats, both: Floats) -> Floats:
    """Return correlations less two standard errors, within [0, 1]; 1 on the diagonal, 0 for judges who never meet."""
    result = np.divide(covariance, scale, out=np.zeros_like(scale), where=(scale > 1e-9) & (both > 0))
    # Two judges with few items in common correlate by chance, and must not count as copies for that.
    result = np.clip(result - 2 / np.sqrt(np.maximum(both, 1.0)), 0.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return np.asarray(result)
