"""The one rule that makes P(consistent) a decision: what it weighs, and its threshold."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Self

import numpy as np

from deep._util.checks import Floats, check_kind
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model.adaptation import LeftOut

TIE = 1e-9
"""Log-odds this close to the threshold are at it: rounding must not decide."""

LOWEST = float(np.nextafter(P_MIN, 1.0))
"""The lowest threshold: P that is held at `P_MIN` is below every threshold."""

BY_LABELS = ("precision", "recall")

FORMS = "accuracy, balanced, cost=FP:FN, precision=SHARE or recall=SHARE"

N_DRAWS = 2000
"""Resamples of the datasets and of their labels, for the interval of what a threshold keeps."""


@dataclass(frozen=True)
class Kept:
    """The share of labels that a threshold keeps.

    Parameters
    ----------
    share, low, high : float
        The precision or recall and its 90 % interval.
    n_labels : int
    of : str
        Whose labels they are, in words.
    """

    share: float
    low: float
    high: float
    n_labels: int
    of: str


@dataclass(frozen=True)
class DecisionRule:
    """The rule that makes P(consistent) a decision.

    Parameters
    ----------
    decide : str
        'accuracy': most decisions right. 'balanced': both kinds of error weigh the same. 'cost=FP:FN': the price of
        calling an inconsistent item consistent, and of the reverse. 'precision=SHARE', 'recall=SHARE': by labels.
    log_odds : float or None
        Of P, from which on an item is called consistent; None: those of the dataset's share of consistent items.
    kept : Kept, optional
        Where labels gave the threshold.

    Examples
    --------
    >>> from deep.model import DecisionRule
    >>> rule = DecisionRule.parse("cost=3:1")
    >>> round(rule.threshold(0.4), 6), round(DecisionRule.parse("balanced").threshold(0.4), 6)
    (0.75, 0.4)
    """

    decide: str = "balanced"
    log_odds: float | None = None
    kept: Kept | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule of a text; one by labels has no threshold before :meth:`learn`.

        Raises
        ------
        InputError
            The text is no rule.
        """
        check_kind(text, str, "decide", FORMS)
        name, _, value = text.partition("=")
        try:
            if text == "balanced":
                return cls()
            if text == "accuracy":
                return cls(text, 0.0)
            numbers = [float(part) for part in value.split(":")]
            if name == "cost" and len(numbers) == 2 and all(isfinite(n) and n > 0 for n in numbers):
                return cls(text, float(np.log(numbers[0] / numbers[1])))
            if name in BY_LABELS and len(numbers) == 1 and 0 < numbers[0] < 1:
                return cls(text)
        except ValueError:
            pass
        raise InputError(
            f"`decide` must be {FORMS}, costs above 0 and shares between 0 and 1. Got {text!r}. "
            "For instance: cost=5:1, precision=0.95."
        )

    @property
    def by_labels(self) -> bool:
        """Return whether labels give the threshold."""
        return self.decide.partition("=")[0] in BY_LABELS

    def threshold(self, share: float) -> float:
        """Return the P from which on an item is called consistent, at a dataset's share of consistent items."""
        return self.at(float(logit(share)))

    def at(self, balanced: float) -> float:
        """Return the same, where the log-odds of the balanced rule are known."""
        found = balanced if self.log_odds is None else self.log_odds
        # P is at the share itself where nothing tells items apart: then it is consistent only if most items are.
        tie = TIE if self.log_odds is None and found < 0 else -TIE
        return min(max(float(expit(found + tie)), LOWEST), 1 - P_MIN)

    def learn(self, labeled: Mapping[str, LeftOut], of: str) -> Self:
        """Return the rule with the threshold that keeps the wanted share on labels.

        That of a precision is the lowest that keeps it, that of a recall the highest. Datasets weigh the same; the
        interval resamples them, and their labels.

        Parameters
        ----------
        labeled : mapping of str to LeftOut
            By dataset, log-odds of P beside the number of labels of each kind.
        of : str
            Whose labels they are, in words.

        Raises
        ------
        InputError
            No threshold keeps that share, or there is no label.
        """
        name, _, value = self.decide.partition("=")
        wanted, points = float(value), list(labeled.values())
        if not points:
            raise InputError(
                f"`decide` must be accuracy, balanced or cost=FP:FN for a model of no labeled datasets. "
                f"Got {self.decide!r}. Give labels to `deep fit` or `deep adapt`, and this rule with them."
            )
        z, shares = _kept(points, precision=name == "precision")
        fits = np.flatnonzero(shares >= wanted - TIE)
        if not len(fits):
            raise InputError(
                f"`decide` must be a share that some threshold keeps. Got {self.decide!r}, and at most "
                f"{name}={shares.max():.3f} on {of}."
            )
        at = fits[-1] if name == "precision" else fits[0]
        hits, misses, weight = _counts(points, float(z[at]), precision=name == "precision")
        low, high = _interval(hits, misses, weight)
        n = round(float(sum(one.ones.sum() + one.zeros.sum() for one in points)))
        return replace(self, log_odds=float(z[at]), kept=Kept(float(shares[at]), low, high, n, of))

    def sentence(self, threshold: float | None = None) -> str:
        """Return the rule in words, for people; None: each dataset has a threshold of its own."""
        fixed = None if self.log_odds is None else self.at(self.log_odds)
        found = threshold if fixed is None else fixed
        at = "the threshold of its dataset" if found is None else f"{found:.3f}"
        bound = "above" if fixed is None and found is not None and found < 0.5 else "at least"
        return f"rule: consistent where P is {bound} {at}, {self._why()}; sure where the interval of P excludes it"

    def _why(self) -> str:
        name, _, value = self.decide.partition("=")
        if name == "balanced":
            return "so that both kinds of error weigh the same"
        if name == "accuracy":
            return "so that most decisions are right"
        if name == "cost":
            wrong, missed = value.split(":")
            return f"since a wrong 'consistent' costs {wrong} and a wrong 'inconsistent' {missed}"
        kept = self.kept
        assert kept is not None  # of a model, which has learned it
        found = f"{100 * kept.share:.1f} %, 90 % interval {100 * kept.low:.1f} to {100 * kept.high:.1f}"
        return f"which keeps a {name} of {value} on {kept.n_labels} labels of {kept.of} ({found})"

    def values(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


BALANCED = DecisionRule()


def _kept(points: list[LeftOut], *, precision: bool) -> tuple[Floats, Floats]:
    """Return each threshold, the highest first, with the precision or recall there."""
    z = np.concatenate([one.score for one in points])
    ones, zeros = (
        np.concatenate([getattr(one, name) / (one.ones.sum() + one.zeros.sum()) for one in points])
        for name in ("ones", "zeros")
    )
    order = np.argsort(-z, kind="stable")
    hits, misses = np.cumsum(ones[order]), np.cumsum(zeros[order])
    last = np.append(z[order][1:] != z[order][:-1], True)
    shares = hits / (hits + misses) if precision else hits / hits[-1]
    return z[order][last], shares[last]


def _counts(points: list[LeftOut], at: float, *, precision: bool) -> tuple[Floats, Floats, Floats]:
    """Return by dataset the labels that count as kept, those that do not, and what a label weighs."""
    called = [one.score >= at for one in points]
    hits = np.array([one.ones[on].sum() for one, on in zip(points, called, strict=True)])
    misses = np.array(
        [one.zeros[on].sum() if precision else one.ones[~on].sum() for one, on in zip(points, called, strict=True)]
    )
    return hits, misses, np.array([1 / (one.ones.sum() + one.zeros.sum()) for one in points])


def _interval(hits: Floats, misses: Floats, weight: Floats) -> tuple[float, float]:
    """Return the 90 % interval of a share of labels in datasets (Jeffreys), with these drawn again where several."""
    rng = np.random.default_rng(0)
    rates = rng.beta(hits + 0.5, misses + 0.5, (N_DRAWS, len(hits)))
    drawn = rng.integers(len(hits), size=rates.shape)
    mass = ((hits + misses) * weight)[drawn]
    kept = np.maximum(mass.sum(axis=1), np.finfo(float).tiny)
    values = (np.take_along_axis(rates, drawn, axis=1) * mass).sum(axis=1) / kept
    low, high = np.quantile(values[mass.sum(axis=1) > 0], [0.05, 0.95])
    return float(low), float(high)
