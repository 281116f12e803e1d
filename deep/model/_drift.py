"""Have the judges moved since the model was fitted? A comparison of votes that needs no label."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from deep._util.checks import Floats, Votes, check_votes
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model._misfit import LEVEL, MIN_DATASETS_FOR_SPREAD

STATISTICS = {
    "coverage": "share of items it votes on",
    "positive": "share of its votes that say consistent",
    "agreement": "share of its votes that agree with another judge's",
    "implied_tpr": "share of what the model takes for consistent that it calls consistent",
    "implied_fpr": "share of what the model takes for inconsistent that it calls consistent",
}
"""What is compared of every judge, and what it means."""

PANEL_NAME = "(panel)"
"""Stands for the median judge."""

Predict = Callable[[npt.NDArray[np.int8]], Floats]


@dataclass(frozen=True)
class DriftRow:
    """One statistic of one judge.

    Parameters
    ----------
    judge, statistic : str
        `judge` is ``(panel)`` for the median judge; `statistic` is a key of `STATISTICS`.
    low, high : float
        Where 9 of 10 new datasets are expected, in [0, 1]; for a judge, given what the panel did.
    now : float
        On the new votes; NaN where the judge has no vote that it could be computed on.
    p : float
        Of a value as far out as `now` on a dataset like the old ones.
    moved : bool
        Whether that is beyond chance, all judges and statistics considered.
    """

    judge: str
    statistic: str
    low: float
    high: float
    now: float
    p: float
    moved: bool


@dataclass(frozen=True, eq=False)
class _RateAngles:
    """Angles of every statistic of every judge, with their sampling variance, shape (n_statistics, k).

    The angle 2 asin(sqrt(rate)) of a share of n has the variance 1 / n whatever the rate, at 0 and 1 too, where a
    judge that always says the same leaves log-odds without an end.
    """

    angle: Floats
    variance: Floats
    known: npt.NDArray[np.bool_]


def compare_votes(old: Cells, votes: npt.NDArray[np.int8], predict: Predict, *, alpha: float = 0.05) -> list[DriftRow]:
    """Compare new votes with those of the training datasets.

    Each statistic is a rate. The panel's median (as an angle, whose
    variance does not depend on the rate), and each judge's less that median, are expected to scatter
    on a new dataset as between the old ones (method of moments, t distribution with one degree of freedom less than
    there are old datasets), plus sampling noise. With one old dataset only sampling noise is allowed for. Holm's
    correction covers all judges, the panel and all statistics.

    Parameters
    ----------
    old : Cells
        Grouped by dataset; labels are not looked at.
    votes : ndarray of int8, shape (n_examples, k)
        New votes of the same judges, in the same order.
    predict : callable
        P(consistent) of vote patterns, for the implied error rates.
    alpha : float in (0, 1), default=0.05
        Chance of a false alarm for votes that are like the old ones.

    Returns
    -------
    list of DriftRow
        By judge and statistic, in order.

    Raises
    ------
    InputError
        The number of columns differs, or `alpha` is not in (0, 1).
    """
    new = check_votes(votes, name="votes", voters=old.voter_names)
    if new.shape[1] != len(old.voter_names):
        raise InputError(f"`votes` must have {len(old.voter_names)} columns. Got {new.shape[1]}.")
    if not 0 < alpha < 1:
        raise InputError(f"`alpha` must lie strictly between 0 and 1. Got {alpha!r}.")
    patterns, inverse = distinct_patterns(np.ascontiguousarray(new))
    now = _rates(patterns, np.bincount(inverse).astype(float), predict(patterns))
    scatters = _scatter_of_datasets(_rates_of_old_datasets(old, predict))
    tests = [_test_against_scatter(scatter, angle, now) for scatter, angle in zip(scatters, _angles(now), strict=True)]
    rows: list[DriftRow] = []
    for test, flags, owners in zip(tests, _holm_flags(tests, alpha), (old.voter_names, (PANEL_NAME,)), strict=False):
        rows += _rows(test, flags, owners, now)
    return rows


def false_alarms(old: Cells, predict: Predict, *, alpha: float = 0.05) -> list[str]:
    """Return the old datasets that would be called moved by comparison with the other ones.

    An honest reading of `compare_votes` on the data at hand: datasets differ from each other without any drift.
    Empty where there are fewer than three.
    """
    rates = _rates_of_old_datasets(old, predict)
    if len(rates) < MIN_DATASETS_FOR_SPREAD:
        return []
    scatter = _scatter_of_datasets(rates)
    flagged = []
    for name, one in zip(old.groups, rates, strict=True):
        parts = zip(scatter, _angles(one), strict=True)
        tests = [_test_against_scatter(whole.without(angle, one), angle, one) for whole, angle in parts]
        flagged += [name] if any(flags.any() for flags in _holm_flags(tests, alpha)) else []
    return flagged


def rate_rises(old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]) -> Floats:
    """Return p-values of rises of rates, all of them considered (Holm); each rate with the number it is a share of.

    Examples
    --------
    >>> rate_rises([(0.05, 300), (0.05, 300)], [(0.06, 300), (0.2, 300)]).round(3).tolist()
    [0.295, 0.0]
    """
    return holm(special.ndtr(-_change_z(old, new)))


def _change_z(old: npt.ArrayLike, new: npt.ArrayLike) -> Floats:
    """Return by how many standard errors rates have risen; each rate with the number it is a share of."""
    (before, n_before), (now, n_now) = (np.array(rates, dtype=np.float64).reshape(-1, 2).T for rates in (old, new))
    return np.asarray((_rate_to_angle(now) - _rate_to_angle(before)) / np.sqrt(1 / n_before + 1 / n_now))


def _rates_of_old_datasets(old: Cells, predict: Predict) -> list[_RateAngles]:
    p = predict(old.patterns)
    counts = old.counts.sum(axis=2).T.astype(float)
    return [_rates(old.patterns[present], rows[present], p[present]) for rows in counts for present in (rows > 0,)]


def _rates(patterns: npt.NDArray[np.int8], n: Floats, p: Floats) -> _RateAngles:
    """Return the rates of each judge in a dataset, from its patterns, their counts and P of each."""
    mask, positive = patterns >= 0, patterns == 1
    equal, both = _agreeing_pairs(patterns, n)
    # Agreement is counted with each other judge; pairs of one item are one item's worth of evidence, not k - 1.
    others = max(patterns.shape[1] - 1, 1)
    hits = np.stack([n @ mask, n @ positive, equal / others, (n * p) @ positive, (n * (1 - p)) @ positive])
    of = np.stack([np.full(mask.shape[1], n.sum()), n @ mask, both / others, (n * p) @ mask, (n * (1 - p)) @ mask])
    rate = np.clip(hits / np.maximum(of, 1e-9), 0.0, 1.0)
    return _RateAngles(2 * np.arcsin(np.sqrt(rate)), 1 / np.maximum(of, 1e-9), of > 0)


def _agreeing_pairs(patterns: npt.NDArray[np.int8], n: Floats) -> tuple[Floats, Floats]:
    """Return, for each judge, pairs with another judge that agree, and all pairs."""
    ones, zeros = (patterns == 1).astype(float), (patterns == 0).astype(float)
    has_vote = ones + zeros
    equal = (ones.T * n) @ ones + (zeros.T * n) @ zeros
    both = (has_vote.T * n) @ has_vote
    np.fill_diagonal(equal, 0.0)
    np.fill_diagonal(both, 0.0)
    return equal.sum(axis=1), both.sum(axis=1)


def _angles(rates: _RateAngles) -> list[Floats]:
    """Return each judge's angles less the panel's median, and that median; of a judge alone only its own.

    What a dataset does to all judges alike is no news of one of them.
    """
    if rates.angle.shape[1] == 1:
        return [rates.angle]
    panel = np.median(rates.angle, axis=1, keepdims=True)
    return [rates.angle - panel, panel]


@dataclass(frozen=True, eq=False)
class _AngleScatter:
    """How the old datasets lie: mean angles, squares about them summed, mean sampling variance."""

    n: int
    centre: Floats
    squares: Floats
    noise: Floats

    def without(self, angle: Floats, rates: _RateAngles) -> "_AngleScatter":
        """Return the scatter of all datasets but one, which need not be counted again for that."""
        apart = angle - self.centre
        n_rest = self.n - 1
        squares = np.maximum(self.squares - apart * apart * self.n / n_rest, 0.0)
        noise = (self.noise * self.n - rates.variance[:, : angle.shape[1]]) / n_rest
        return _AngleScatter(n_rest, self.centre - apart / n_rest, squares, np.maximum(noise, 0.0))


def _scatter_of_datasets(old: Sequence[_RateAngles]) -> list[_AngleScatter]:
    """Return the scatter of everything in `_angles`."""
    result = []
    for angles in zip(*map(_angles, old), strict=True):
        stack = np.stack(angles)
        centre = stack.mean(axis=0)
        noise = np.mean([rates.variance[:, : stack.shape[2]] for rates in old], axis=0)
        result.append(_AngleScatter(len(stack), centre, ((stack - centre) ** 2).sum(axis=0), noise))
    return result


@dataclass(frozen=True, eq=False)
class _Test:
    """Angles now and their expected range, and p-values; shape (n_statistics, n_owners)."""

    now: Floats
    centre: Floats
    reach: Floats
    p: Floats


def _holm_flags(tests: Sequence[_Test], alpha: float) -> list[npt.NDArray[np.bool_]]:
    """Return which statistics are beyond chance by each test, all tests considered (Holm)."""
    flags_of_all = holm(np.concatenate([test.p.ravel() for test in tests])) <= alpha
    ends = np.cumsum([test.p.size for test in tests])
    return [flags.reshape(test.p.shape) for flags, test in zip(np.split(flags_of_all, ends[:-1]), tests, strict=True)]


def _test_against_scatter(old: _AngleScatter, angle: Floats, now: _RateAngles) -> _Test:
    """Return how new angles lie in the spread of the old ones."""
    n, noise = old.n, old.noise
    # The method of moments: what is left of the variance between old datasets once sampling is taken away.
    between = np.maximum(old.squares / (n - 1) - noise, 0.0) if n > 1 else np.zeros_like(noise)
    # A new dataset differs from the mean of n old ones by its own scatter and by that of the mean.
    spread = np.sqrt(between * (1 + 1 / n) + noise / n + now.variance[:, : angle.shape[1]])
    apart = -np.abs(angle - old.centre) / spread
    below = special.stdtr(n - 1, apart) if n > 1 else special.ndtr(apart)
    reach = special.stdtrit(n - 1, (1 + LEVEL) / 2) if n > 1 else special.ndtri((1 + LEVEL) / 2)
    return _Test(angle, old.centre, reach * spread, np.where(now.known[:, : angle.shape[1]], 2 * below, 1.0))


def _rows(test: _Test, flags: npt.NDArray[np.bool_], owners: Sequence[str], now: _RateAngles) -> Iterator[DriftRow]:
    """Yield a row for each statistic of each judge, with its expected range as rates."""
    for j, owner in enumerate(owners):
        for i, statistic in enumerate(STATISTICS):
            shift = float(now.angle[i, j] - test.now[i, j]) if owner != PANEL_NAME else 0.0
            low, high = (_angle_to_rate(shift + test.centre[i, j] + sign * test.reach[i, j]) for sign in (-1, 1))
            value = _angle_to_rate(shift + test.now[i, j]) if now.known[i, j] else float("nan")
            yield DriftRow(owner, statistic, low, high, value, float(test.p[i, j]), moved=bool(flags[i, j]))


def _angle_to_rate(angle: float) -> float:
    return float(np.sin(np.clip(angle, 0.0, np.pi) / 2) ** 2)


def _rate_to_angle(rate: npt.ArrayLike) -> Floats:
    return np.asarray(2 * np.arcsin(np.sqrt(rate)))


VoteRates = Mapping[str, Mapping[str, Sequence[float]]]
"""By statistic and judge: a rate, and how many independent items it is worth."""


def vote_rates(votes: Votes, voter_names: Sequence[str], documents: npt.ArrayLike | None = None) -> VoteRates:
    """Return how often each judge votes and says 1, and the mean share of 1 of an item, of ``(panel)``.

    Items of one document are not independent: a rate is worth as many items as would give its variance (Kish).

    Examples
    --------
    >>> votes = np.array([[1, 1], [1, 0], [0, -1], [0, 0]])
    >>> vote_rates(votes, ["a", "b"])["positive"]["b"]
    [0.3333333333333333, 3.0]
    """
    codes = np.arange(len(votes)) if documents is None else np.unique(np.asarray(documents), return_inverse=True)[1]
    has_vote = votes >= 0
    n_votes = has_vote.sum(axis=1)

    def rate(values: Floats, mask: npt.NDArray[np.bool_]) -> list[float]:
        n = float(mask.sum())
        if not n:
            return [0.5, 0.0]
        mean = float(values[mask].mean())
        variance = float((np.bincount(codes[mask], values[mask] - mean) ** 2).sum()) / n**2
        return [mean, mean * (1 - mean) / variance if variance > 0 else n]

    everywhere, positive = np.ones(len(votes), dtype=bool), (votes == 1).astype(float)
    by_judge = {name: rate(positive[:, j], has_vote[:, j]) for j, name in enumerate(voter_names)}
    shares = positive.sum(axis=1) / np.maximum(n_votes, 1)
    coverage = {name: rate(has_vote[:, j].astype(float), everywhere) for j, name in enumerate(voter_names)}
    return {"positive": {PANEL_NAME: rate(shares, n_votes > 0), **by_judge}, "coverage": coverage}


def common_shift(old: VoteRates, new: VoteRates, *, alpha: float = 0.05) -> DriftRow:
    """Test whether all judges together say 1 as often as in a reference batch of the same stream."""
    (before, n_before), (now, n_now) = (rates["positive"][PANEL_NAME] for rates in (old, new))
    measurable = min(n_before, n_now) > 0
    reach = float(special.ndtri((1 + LEVEL) / 2)) * np.sqrt(1 / n_before + 1 / n_now) if measurable else np.pi
    low, high = (_angle_to_rate(float(_rate_to_angle(before)) + sign * reach) for sign in (-1, 1))
    p = 2 * float(special.ndtr(-abs(_change_z([[before, n_before]], [[now, n_now]])[0]))) if measurable else 1.0
    return DriftRow(PANEL_NAME, "positive", low, high, now, p, moved=p <= alpha)


# Share of batches in which a shift is to be found. The convention since Cohen (1988).
SHIFT_DETECTION_POWER = 0.8


def least_shift(row: DriftRow, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Return the least change of a rate that such a test finds in 8 of 10 batches.

    Parameters
    ----------
    row : DriftRow
        Its bounds tell how far the rate scatters.
    n_datasets : int
        Old ones; of one only sampling noise is allowed for.
    alpha : float
        Of this test alone.

    Examples
    --------
    >>> row = DriftRow(PANEL_NAME, "positive", 0.55, 0.65, 0.6, 0.9, False)
    >>> round(least_shift(row, 1), 3), round(least_shift(row, 4), 3)
    (0.085, 0.085)
    """
    quantile = special.ndtri if n_datasets == 1 else lambda p: special.stdtrit(n_datasets - 1, p)
    low, high = _rate_to_angle([row.low, row.high])
    spread = (high - low) / 2 / quantile((1 + LEVEL) / 2)
    reach = spread * (quantile(1 - alpha / 2) + special.ndtri(SHIFT_DETECTION_POWER))
    centre = (low + high) / 2
    return (_angle_to_rate(float(centre + reach)) - _angle_to_rate(float(centre - reach))) / 2


# Changes of an angle that the e-process bets on alike; .2 are ten points about a half.
SHIFTS_BET_ON = np.array([-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8])

# The chance of a change at each look, as it is bet on: the first of 25 looks, in the mean.
CHANGE_PROBABILITY_PER_LOOK = 0.04


# Votes of a judge's rarer kind in a batch, below which their angle is biased, and would seem to move. Chosen; no
# measurement is known.
MIN_EVENTS_FOR_ANGLE = 10


def _rare_rate_change_z_score(before: Floats, pooled: Floats, now: Floats) -> Floats:
    """Return the same as `_change_z` for rare events: the mid-p-value of their number, given that of both together."""
    rare = before < 0.5
    old, new = (np.rint(np.where(rare, rate, 1 - rate) * n).astype(int) for rate, n in ((before, pooled), now.T))
    share = now[:, 1] / (pooled + now[:, 1])
    up_to, below = (special.bdtr(count, old + new, share) for count in (new, new - 1))
    below = np.where(new > 0, below, 0.0)
    return np.asarray(np.where(rare, 1, -1) * special.ndtri(np.clip((up_to + below) / 2, 1e-12, 1 - 1e-12)))


def shift_evidence(history: Sequence[Sequence[float]]) -> float:
    """Return the largest evidence so far that a rate has changed, as an e-process has it.

    Each batch is held against all batches before it: the standardised differences are independent where nothing
    changes, so that the likelihood ratio of a change, averaged over its size and onset, is a martingale. It ever
    reaches 1 / alpha with a chance of at most alpha, however often one looks [1]_.

    Parameters
    ----------
    history : sequence of (float, float)
        A rate, and the number of items that it is worth, of each batch, in order.

    References
    ----------
    .. [1] A. Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38,
       2023. https://doi.org/10.1214/23-STS894

    Examples
    --------
    >>> shift_evidence([(0.5, 300)] * 20) <= 1
    True
    >>> shift_evidence([(0.5, 1000)] + [(0.5, 300)] * 5 + [(0.65, 300)] * 2) > 20
    True
    """
    rates = np.array([one for one in history if one[1] > 0], dtype=np.float64).reshape(-1, 2)
    if len(rates) < 2:
        return 1.0
    n = rates[:, 1]
    pooled = np.cumsum(n)[:-1]
    before = np.cumsum(rates[:, 0] * n)[:-1] / pooled
    z = _change_z(np.column_stack([before, pooled]), rates[1:])
    few = n[1:] * np.minimum(before, 1 - before) < MIN_EVENTS_FOR_ANGLE
    z[few] = _rare_rate_change_z_score(before[few], pooled[few], rates[1:][few])
    errors = np.sqrt(1 / pooled + 1 / n[1:])
    # By onset, look and size: what the mean of z would be. A batch after the onset that joined the others blurs it.
    onset, look = np.arange(len(z))[:, None], np.arange(len(z))[None, :]
    size = np.where(look >= onset, pooled[:, None] / pooled[None, :] / errors, 0.0)[:, :, None] * SHIFTS_BET_ON
    ratios = np.exp(np.cumsum(size * z[None, :, None] - size**2 / 2, axis=1)).mean(axis=2)
    chances = CHANGE_PROBABILITY_PER_LOOK * (1 - CHANGE_PROBABILITY_PER_LOOK) ** np.arange(len(z))
    # Onsets that are still to come have a ratio of 1, as has a change that never comes.
    return float((chances @ (ratios - 1)).max() + 1)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values for several tests together, by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    result = np.empty(len(p))
    result[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return result


# Share of the evidence that is for all judges together: the rest is for how often each by itself votes and says 1.
PANEL_EVIDENCE_SHARE = 0.5


def changed_rates(stream: Sequence[VoteRates], *, alpha: float) -> list[tuple[str, str]]:
    """Return the (judge, statistic) whose rates have changed over batches of one stream, however often one looks.

    Of streams without any change at most a share `alpha` ever has one here.

    Parameters
    ----------
    stream : sequence of VoteRates
        In order, the last one the newest; a judge that an earlier one lacks is compared from where it came.
    alpha : float
        In (0, 1): the largest share of unchanged streams that ever have an alarm, over all looks.
    """
    positive, coverage = (stream[-1][statistic] for statistic in ("positive", "coverage"))
    bets = {(PANEL_NAME, "positive"): PANEL_EVIDENCE_SHARE}
    # The bets sum to 1, so that the chance of any alarm stays below alpha (the union bound).
    each = (1 - PANEL_EVIDENCE_SHARE) / (2 * len(coverage))
    bets |= {
        (judge, name): each
        for name, rates in (("positive", positive), ("coverage", coverage))
        for judge in rates
        if judge != PANEL_NAME
    }
    histories = {key: [rates[key[1]][key[0]] for rates in stream if key[0] in rates[key[1]]] for key in bets}
    return [key for key, bet in bets.items() if bet * shift_evidence(histories[key]) >= 1 / alpha]
