"""Have the judges moved since the model was fitted? A comparison of votes that needs no label."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from deep._util.checks import Floats, check_votes
from deep.exceptions import InputError
from deep.features import Cells, distinct_patterns
from deep.model.adaptation._misfit import LEVEL, MIN_DATASETS

STATISTICS = {
    "coverage": "share of items it votes on",
    "positive": "share of its votes that say consistent",
    "agreement": "share of its votes that agree with another judge's",
    "implied_tpr": "share of what the model takes for consistent that it calls consistent",
    "implied_fpr": "share of what the model takes for inconsistent that it calls consistent",
}
"""What is compared of every judge, and what it means."""

PANEL = "(panel)"
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
class _Rates:
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
    scatters = _scatter(_old_rates(old, predict))
    tests = [_tested(scatter, angle, now) for scatter, angle in zip(scatters, _angles(now), strict=True)]
    rows: list[DriftRow] = []
    for test, flags, owners in zip(tests, _moved(tests, alpha), (old.voter_names, (PANEL,)), strict=False):
        rows += _rows(test, flags, owners, now)
    return rows


def false_alarms(old: Cells, predict: Predict, *, alpha: float = 0.05) -> list[str]:
    """Return the old datasets that would be called moved by comparison with the other ones.

    An honest reading of `compare_votes` on the data at hand: datasets differ from each other without any drift.
    Empty where there are fewer than three.
    """
    rates = _old_rates(old, predict)
    if len(rates) < MIN_DATASETS:
        return []
    scatter = _scatter(rates)
    flagged = []
    for name, one in zip(old.groups, rates, strict=True):
        parts = zip(scatter, _angles(one), strict=True)
        tests = [_tested(whole.without(angle, one), angle, one) for whole, angle in parts]
        flagged += [name] if any(flags.any() for flags in _moved(tests, alpha)) else []
    return flagged


def rate_rises(old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]) -> Floats:
    """Return p-values of rises of rates, all of them considered (Holm); each rate with the number it is a share of.

    Examples
    --------
    >>> rate_rises([(0.05, 300), (0.05, 300)], [(0.06, 300), (0.2, 300)]).round(3).tolist()
    [0.295, 0.0]
    """
    (before, n_before), (now, n_now) = (np.array(rates, dtype=np.float64).reshape(-1, 2).T for rates in (old, new))
    apart = 2 * (np.arcsin(np.sqrt(now)) - np.arcsin(np.sqrt(before)))
    return holm(special.ndtr(-apart / np.sqrt(1 / n_before + 1 / n_now)))


def _old_rates(old: Cells, predict: Predict) -> list[_Rates]:
    p = predict(old.patterns)
    counts = old.counts.sum(axis=2).T.astype(float)
    return [_rates(old.patterns[seen], rows[seen], p[seen]) for rows in counts for seen in (rows > 0,)]


def _rates(patterns: npt.NDArray[np.int8], n: Floats, p: Floats) -> _Rates:
    voted, positive = patterns >= 0, patterns == 1
    equal, both = _agreement(patterns, n)
    others = max(patterns.shape[1] - 1, 1)
    hits = np.stack([n @ voted, n @ positive, equal / others, (n * p) @ positive, (n * (1 - p)) @ positive])
    of = np.stack([np.full(voted.shape[1], n.sum()), n @ voted, both / others, (n * p) @ voted, (n * (1 - p)) @ voted])
    rate = np.clip(hits / np.maximum(of, 1e-9), 0.0, 1.0)
    return _Rates(2 * np.arcsin(np.sqrt(rate)), 1 / np.maximum(of, 1e-9), of > 0)


def _agreement(patterns: npt.NDArray[np.int8], n: Floats) -> tuple[Floats, Floats]:
    """Return, for each judge, pairs with another judge that agree, and all pairs."""
    ones, zeros = (patterns == 1).astype(float), (patterns == 0).astype(float)
    voted = ones + zeros
    equal = (ones.T * n) @ ones + (zeros.T * n) @ zeros
    both = (voted.T * n) @ voted
    np.fill_diagonal(equal, 0.0)
    np.fill_diagonal(both, 0.0)
    return equal.sum(axis=1), both.sum(axis=1)


def _angles(rates: _Rates) -> list[Floats]:
    """Return each judge's angles less the panel's median, and that median; of a judge alone only its own.

    What a dataset does to all judges alike is no news of one of them.
    """
    if rates.angle.shape[1] == 1:
        return [rates.angle]
    panel = np.median(rates.angle, axis=1, keepdims=True)
    return [rates.angle - panel, panel]


@dataclass(frozen=True, eq=False)
class _Scatter:
    """How the old datasets lie: mean angles, squares about them summed, mean sampling variance."""

    n: int
    centre: Floats
    squares: Floats
    noise: Floats

    def without(self, angle: Floats, rates: _Rates) -> "_Scatter":
        """Return the scatter of all datasets but one, which need not be counted again for that."""
        apart = angle - self.centre
        left = self.n - 1
        squares = np.maximum(self.squares - apart * apart * self.n / left, 0.0)
        noise = (self.noise * self.n - rates.variance[:, : angle.shape[1]]) / left
        return _Scatter(left, self.centre - apart / left, squares, np.maximum(noise, 0.0))


def _scatter(old: Sequence[_Rates]) -> list[_Scatter]:
    """Return the scatter of everything in `_angles`."""
    found = []
    for angles in zip(*map(_angles, old), strict=True):
        known = np.stack(angles)
        centre = known.mean(axis=0)
        noise = np.mean([rates.variance[:, : known.shape[2]] for rates in old], axis=0)
        found.append(_Scatter(len(known), centre, ((known - centre) ** 2).sum(axis=0), noise))
    return found


@dataclass(frozen=True, eq=False)
class _Test:
    """Angles now and their expected range, and p-values; shape (n_statistics, n_owners)."""

    now: Floats
    centre: Floats
    reach: Floats
    p: Floats


def _moved(tests: Sequence[_Test], alpha: float) -> list[npt.NDArray[np.bool_]]:
    """Return which statistics are beyond chance by each test, all tests considered (Holm)."""
    moved = holm(np.concatenate([test.p.ravel() for test in tests])) <= alpha
    ends = np.cumsum([test.p.size for test in tests])
    return [flags.reshape(test.p.shape) for flags, test in zip(np.split(moved, ends[:-1]), tests, strict=True)]


def _tested(old: _Scatter, angle: Floats, now: _Rates) -> _Test:
    """Return how new angles lie in the spread of the old ones."""
    n, noise = old.n, old.noise
    between = np.maximum(old.squares / (n - 1) - noise, 0.0) if n > 1 else np.zeros_like(noise)
    spread = np.sqrt(between * (1 + 1 / n) + noise / n + now.variance[:, : angle.shape[1]])
    apart = -np.abs(angle - old.centre) / spread
    below = special.stdtr(n - 1, apart) if n > 1 else special.ndtr(apart)
    reach = special.stdtrit(n - 1, (1 + LEVEL) / 2) if n > 1 else special.ndtri((1 + LEVEL) / 2)
    return _Test(angle, old.centre, reach * spread, np.where(now.known[:, : angle.shape[1]], 2 * below, 1.0))


def _rows(test: _Test, moved: npt.NDArray[np.bool_], owners: Sequence[str], now: _Rates) -> Iterator[DriftRow]:
    for j, owner in enumerate(owners):
        for i, statistic in enumerate(STATISTICS):
            shift = float(now.angle[i, j] - test.now[i, j]) if owner != PANEL else 0.0
            low, high = (_rate(shift + test.centre[i, j] + sign * test.reach[i, j]) for sign in (-1, 1))
            value = _rate(shift + test.now[i, j]) if now.known[i, j] else float("nan")
            yield DriftRow(owner, statistic, low, high, value, float(test.p[i, j]), moved=bool(moved[i, j]))


def _rate(angle: float) -> float:
    return float(np.sin(np.clip(angle, 0.0, np.pi) / 2) ** 2)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values for several tests together, by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    found = np.empty(len(p))
    found[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return found
