"""What deep says of items: P and its interval, the rule that makes P a decision, and the one table of its columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Mask, check_kind
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.model._correction import Correction
from deep.model._misfit import HeldOutData, Misfit
from deep.model._prior import PriorEstimate
from deep.records import ABSTAIN

if TYPE_CHECKING:
    import pyarrow as pa

# The least chance of being right, over the whole interval, of a decision that is called sure. That the interval lies on
# one side of the threshold says less: a balanced threshold may be far from a half, and just below it most decisions are
# wrong.
SURE = 2 / 3

THRESHOLD_TOLERANCE = 1e-9
"""Log-odds this close to the threshold are at it: rounding must not decide."""

LOWEST_THRESHOLD = float(np.nextafter(P_MIN, 1.0))
"""The lowest threshold: P that is held at `P_MIN` is below every threshold."""

# The rules of decision whose threshold is learned from labels.
LABEL_BASED_RULES = ("precision", "recall")

# The texts of all rules of decision, as an error lists them.
RULE_FORMS = "accuracy, balanced, cost=FP:FN, precision=SHARE or recall=SHARE"

# Resamples of the datasets and of their labels, for the interval of what a threshold keeps. Beyond each end of a 90 %
# interval lie a hundred of them.
N_RESAMPLES = 2000


@dataclass(frozen=True)
class KeptShare:
    """The share of labels that a threshold keeps.

    Parameters
    ----------
    share, low, high : float
        The precision or recall and its 90 % interval.
    n_labels : int
        Labels of 0 and of 1 that the threshold was found on.
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
    kept : KeptShare, optional
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
    kept: KeptShare | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule of a text; one by labels has no threshold before :meth:`learn`.

        Raises
        ------
        InputError
            The text is no rule.
        """
        check_kind(text, str, "decide", RULE_FORMS)
        name, _, value = text.partition("=")
        try:
            if text == "balanced":
                return cls()
            # At equal prices an item is called consistent from P = 1/2 on: log-odds of 0.
            if text == "accuracy":
                return cls(text, 0.0)
            numbers = [float(part) for part in value.split(":")]
            if name == "cost" and len(numbers) == 2 and all(isfinite(n) and n > 0 for n in numbers):
                # Calling it consistent costs FP (1 - P), the reverse FN P: they are equal at the odds FP / FN (Elkan
                # 2001).
                return cls(text, float(np.log(numbers[0] / numbers[1])))
            if name in LABEL_BASED_RULES and len(numbers) == 1 and 0 < numbers[0] < 1:
                return cls(text)
        except ValueError:
            pass
        raise InputError(
            f"`decide` must be {RULE_FORMS}, costs above 0 and shares between 0 and 1. Got {text!r}. "
            "For instance: cost=5:1, precision=0.95."
        )

    @property
    def by_labels(self) -> bool:
        """Return whether labels give the threshold."""
        return self.decide.partition("=")[0] in LABEL_BASED_RULES

    def threshold(self, share: float) -> float:
        """Return an item is called consistent from this P on, at a dataset's share of consistent items."""
        return self.at(float(logit(share)))

    def at(self, balanced: float) -> float:
        """Return the same, where the log-odds of the balanced rule are known."""
        result = balanced if self.log_odds is None else self.log_odds
        # P is at the share itself where nothing tells items apart: then it is consistent only if most items are.
        tie = THRESHOLD_TOLERANCE if self.log_odds is None and result < 0 else -THRESHOLD_TOLERANCE
        return min(max(float(expit(result + tie)), LOWEST_THRESHOLD), 1 - P_MIN)

    def learn(self, labeled: Mapping[str, HeldOutData], of: str) -> Self:
        """Return the rule with the threshold that keeps the wanted share on labels.

        That of a precision is the lowest that keeps it, that of a recall the highest. Datasets weigh the same; the
        interval resamples them, and their labels.

        Parameters
        ----------
        labeled : mapping of str to HeldOutData
            By dataset, log-odds of P beside the number of labels of each kind.
        of : str
            Whose labels they are, in words.

        Raises
        ------
        InputError
            No threshold keeps that share, or there is no label.
        """
        name, _, value = self.decide.partition("=")
        goal, points = float(value), list(labeled.values())
        if not points:
            raise InputError(
                f"`decide` must be accuracy, balanced or cost=FP:FN for a model of no labeled datasets. "
                f"Got {self.decide!r}. Give labels to `deep fit` or `deep adapt`, and this rule with them."
            )
        z, shares = _threshold_curve(points, precision=name == "precision")
        fits = np.flatnonzero(shares >= goal - THRESHOLD_TOLERANCE)
        if not len(fits):
            raise InputError(
                f"`decide` must be a share that some threshold keeps. Got {self.decide!r}, and at most "
                f"{name}={shares.max():.3f} on {of}."
            )
        # Thresholds come the highest first: the last that keeps a precision passes most items, the first that keeps a
        # recall fewest.
        at = fits[-1] if name == "precision" else fits[0]
        hits, misses, weight = _kept_counts(points, float(z[at]), precision=name == "precision")
        low, high = _kept_share_interval(hits, misses, weight)
        n = round(float(sum(one.ones.sum() + one.zeros.sum() for one in points)))
        return replace(self, log_odds=float(z[at]), kept=KeptShare(float(shares[at]), low, high, n, of))

    def learn_on_target(self, p: Floats, labels: npt.ArrayLike, target: str) -> Self:
        """Return a rule by labels with the threshold that P of a dataset's labeled rows give; any other as it is."""
        if not self.by_labels:
            return self
        y, is_labeled = np.asarray(labels), np.asarray(labels) >= 0
        own = HeldOutData(logit(p)[is_labeled], (y[is_labeled] == 1).astype(float), (y[is_labeled] == 0).astype(float))
        return self.learn({target: own}, f"{target}, which corrected P")

    def sentence(self, threshold: float | None = None) -> str:
        """Return the rule in words, for people; None: each dataset has a threshold of its own."""
        fixed = None if self.log_odds is None else self.at(self.log_odds)
        result = threshold if fixed is None else fixed
        at = "the threshold of its dataset" if result is None else f"{result:.3f}"
        bound = "above" if fixed is None and result is not None and result < 0.5 else "at least"
        return (
            f"rule: consistent if P is {bound} {at}, {self._why()}. "
            "An item is sure where its whole 90 % interval gives that answer a chance of 2 in 3 or more"
        )

    def _why(self) -> str:
        """Return where the threshold of the rule comes from, in words."""
        name, _, value = self.decide.partition("=")
        if name == "balanced":
            return "which balances both kinds of error"
        if name == "accuracy":
            return "which makes the most decisions right"
        if name == "cost":
            wrong, missed = value.split(":")
            return f"because a wrong 'consistent' costs {wrong} and a wrong 'inconsistent' {missed}"
        estimate = self.kept
        assert estimate is not None  # of a model, which has learned it
        result = f"{100 * estimate.share:.1f} %, 90 % interval {100 * estimate.low:.1f} to {100 * estimate.high:.1f}"
        return f"which keeps a {name} of {value} on {estimate.n_labels} labels of {estimate.of} ({result})"

    def values(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


# The default rule: the threshold of the best balanced accuracy.
BALANCED_RULE = DecisionRule()


def _threshold_curve(points: list[HeldOutData], *, precision: bool) -> tuple[Floats, Floats]:
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


def _kept_counts(points: list[HeldOutData], at: float, *, precision: bool) -> tuple[Floats, Floats, Floats]:
    """Return by dataset the labels that count as kept, those that do not, and what a label weighs."""
    positive = [one.score >= at for one in points]
    hits = np.array([one.ones[on].sum() for one, on in zip(points, positive, strict=True)])
    misses = np.array(
        [one.zeros[on].sum() if precision else one.ones[~on].sum() for one, on in zip(points, positive, strict=True)]
    )
    return hits, misses, np.array([1 / (one.ones.sum() + one.zeros.sum()) for one in points])


def _kept_share_interval(hits: Floats, misses: Floats, weight: Floats) -> tuple[float, float]:
    """Return the 90 % interval of a share of labels in datasets (Jeffreys), with these drawn again where several."""
    rng = np.random.default_rng(0)
    rates = rng.beta(hits + 0.5, misses + 0.5, (N_RESAMPLES, len(hits)))
    # Datasets are drawn as well as labels: the next dataset is none of these.
    resampled = rng.integers(len(hits), size=rates.shape)
    mass = ((hits + misses) * weight)[resampled]
    total = np.maximum(mass.sum(axis=1), np.finfo(float).tiny)
    values = (np.take_along_axis(rates, resampled, axis=1) * mass).sum(axis=1) / total
    low, high = np.quantile(values[mass.sum(axis=1) > 0], [0.05, 0.95])
    return float(low), float(high)


def sure_mask(low: Floats, high: Floats, threshold: float) -> Mask:
    """Return of which intervals a decision is sure.

    Examples
    --------
    >>> sure_mask(np.array([0.7, 0.6, 0.1, 0.1]), np.array([0.9, 0.9, 0.3, 0.4]), 0.5).tolist()
    [True, False, True, False]
    """
    return np.asarray((low >= max(threshold, SURE)) | (high < min(threshold, 1 - SURE)))


@dataclass(frozen=True, eq=False)
class Scores:
    """P(consistent) of the rows of one dataset, with its prior and misfit.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n_examples,)
        Of P(consistent) as if both classes were equally frequent.
    prior : PriorEstimate
        The dataset's share of consistent items.
    misfit : Misfit
        How far P may be off, as the training datasets tell.
    correction : Correction, optional
        What labels of the dataset say of P.
    rule : DecisionRule, optional
        From which P on an item is called consistent.
    n_votes : ndarray of int, shape (n_examples,), optional
        How many judges voted; needed for :meth:`columns`.
    own : ndarray of float, shape (n_examples,), optional
        P of a chain before calibration.
    context_weight : float, default=0.0
        As in :class:`deep.model.Model`.
    batch_share : PriorEstimate, optional
        The share of consistent items as measured on these rows, where the prior is that of another batch.
    """

    log_odds: Floats
    prior: PriorEstimate
    misfit: Misfit
    correction: Correction | None = None
    rule: DecisionRule = BALANCED_RULE
    n_votes: npt.NDArray[np.integer] | None = None
    own: Floats | None = None
    context_weight: float = 0.0
    batch_share: PriorEstimate | None = None

    @cached_property
    def p_uniform(self) -> Floats:
        """Return P(consistent) if both classes were equally frequent."""
        return np.clip(expit(self.log_odds), P_MIN, 1 - P_MIN)

    @cached_property
    def p_consistent(self) -> Floats:
        """Return P(consistent) at the estimated prior, corrected by labels where there are some."""
        if self.correction is not None:
            return self.correction.apply(self.p_uniform)
        return np.clip(expit(self.prior.line(self.log_odds)), P_MIN, 1 - P_MIN)

    @property
    def share(self) -> PriorEstimate:
        """Return the share of consistent items that people are told of: as measured on these rows, else the prior."""
        return self.prior if self.batch_share is None else self.batch_share

    @property
    def decisions(self) -> Mask:
        """Return which rows are called consistent: those whose `p_consistent` is at least the threshold."""
        return np.asarray(self.p_consistent >= self.threshold)

    @property
    def threshold(self) -> float:
        """Return the P(consistent) from which on an item is called consistent."""
        if self.correction is not None:
            return self.rule.at(self.correction.threshold)
        return self.rule.at(self.prior.threshold_in_context(self.context_weight))

    @property
    def sure(self) -> Mask:
        """Return of which rows the interval of P excludes the threshold, and leaves the decision `SURE` to be right."""
        return sure_mask(*self.bounds, self.threshold)

    @property
    def voted(self) -> Mask:
        """Return on which rows a judge voted; the others have no decision in :meth:`columns`."""
        assert self.n_votes is not None  # of what a model scores
        return np.asarray(self.n_votes > 0)

    @property
    def p_uncalibrated(self) -> Floats:
        """Return P before calibration: a chain's own, else `p_uniform`."""
        return self.p_uniform if self.own is None else self.own

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Return the bounds of `p_consistent` at level 0.9, as :meth:`interval` without counts."""
        return self.interval()

    def interval(self, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of `p_consistent` at level 0.9.

        Parameters
        ----------
        counts : array-like of shape (n_examples,), optional
            The bounds are those of the rate observed in so many rows; default: of the true rate.
        """
        if self.correction is not None:
            return self.correction.interval(self.p_uniform, counts)
        return self.misfit.interval(self.prior.line(self.log_odds), counts)

    def columns(self, names: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of scores of these names, or all; a decision is -1 where no judge voted."""
        return {name: SCORE_COLUMNS[name].cells(self) for name in names or SCORE_COLUMNS}

    def records(self) -> list[dict[str, Any]]:
        """Return the columns of scores of each row; a decision is None where no judge voted."""
        return records_of(SCORE_COLUMNS, self)


@dataclass(frozen=True)
class ItemColumn:
    """A column of a table about items.

    Parameters
    ----------
    name : str
        Of the column in tables, and by default of the attribute of :class:`Scores`.
    type : str
        In Arrow and in numpy.
    meaning : str
        For people. Neighbours of one meaning are told of together.
    example : object
        One of its values, which the documentation shows.
    of : callable, optional
        From :class:`Scores`, or what has the same attributes, to the cells; default: the attribute of that name. Where
        there is no value a cell is NaN, in a column of whole numbers -1.
    high : float or None, default=1
        The largest value; the least is 0.
    nullable : bool, default=False
        Whether a cell may have no value.
    exported : bool, default=False
        Whether it stands in what is exported for use elsewhere, and not in deep's own files and answers alone.
    since : str
        The version of deep that brought it.
    """

    name: str
    type: str
    meaning: str
    example: object = None
    of: Callable[[Any], npt.NDArray[Any]] | None = None
    high: float | None = 1
    nullable: bool = False
    exported: bool = False
    since: str = "0.1.0"

    def cells(self, scores: object) -> npt.NDArray[Any]:
        """Return the cells of rows with these scores."""
        return np.asarray(getattr(scores, self.name) if self.of is None else self.of(scores))

    def missing(self, cells: npt.NDArray[Any]) -> Mask:
        """Return in which cells there is no value."""
        if not self.nullable:
            return np.zeros(len(cells), dtype=bool)
        return np.asarray(np.isnan(cells) if self.type == "double" else cells == ABSTAIN)

    def array(self, cells: npt.NDArray[Any]) -> "pa.Array":
        """Return cells as Arrow has them."""
        import pyarrow as pa

        missing = self.missing(cells)
        return pa.array(cells, mask=missing if missing.any() else None)

    def values(self, cells: npt.NDArray[Any]) -> list[Any]:
        """Return cells as JSON has them."""
        return [None if no else cell for cell, no in zip(cells.tolist(), self.missing(cells).tolist(), strict=True)]


def columns_by_name(*columns: ItemColumn) -> dict[str, ItemColumn]:
    """Return a table of columns."""
    return {column.name: column for column in columns}


ITEM_COLUMNS = columns_by_name(
    ItemColumn("dataset", "string", "the dataset of the item", "weather"),
    ItemColumn("item_id", "string", "its name there", "a1"),
    ItemColumn("label", "int8", "1 consistent, 0 inconsistent, null where it is not known", 1, nullable=True),
)
"""The columns that name an item and say what is known of it."""

SCORE_COLUMNS = columns_by_name(
    ItemColumn("p_consistent", "double", "P(consistent)", 0.21, exported=True),
    # A model's whole panel always has an interval; P that rests on a part of the judges has none.
    ItemColumn(
        "p_low", "double", "its 90 % interval", 0.08, lambda scores: scores.bounds[0], nullable=True, exported=True
    ),
    ItemColumn(
        "p_high", "double", "its 90 % interval", 0.44, lambda scores: scores.bounds[1], nullable=True, exported=True
    ),
    ItemColumn(
        "decision",
        "int8",
        "1 where P is at least the threshold, 0 below it, null without a vote",
        0,
        lambda scores: np.where(scores.voted, scores.decisions, ABSTAIN).astype(np.int8),
        nullable=True,
        exported=True,
    ),
    ItemColumn(
        "sure",
        "int8",
        "1 where the whole interval gives the decision a chance of at least 2 in 3, else 0",
        1,
        lambda scores: (scores.voted & scores.sure).astype(np.int8),
        exported=True,
    ),
    ItemColumn(
        "threshold",
        "double",
        "an item is called consistent from this P on",
        0.52,
        lambda scores: np.full(len(scores.p_consistent), scores.threshold),
        exported=True,
    ),
    ItemColumn("p_uniform", "double", "P as if both classes were equally frequent", 0.19),
    ItemColumn("p_uncalibrated", "double", "of a chain P of its ensembler before the calibrator, else p_uniform", 0.19),
    ItemColumn("n_votes", "int64", "votes of 1 or 0", 1, high=None, exported=True),
)
"""What deep says of an item. Whoever shows it takes the columns from here: a new one is an entry, and no other edit."""

TEXT_COLUMNS = columns_by_name(
    ItemColumn("claim", "string", "the claim", "The river rose by 41 cm.", nullable=True),
    ItemColumn("source", "string", "the source that it is held against", "The river rose by 14 cm.", nullable=True),
    ItemColumn("question", "string", "the question that the claim answers", "How far did it rise?", nullable=True),
)
"""The texts of an item, where they are wanted."""


def exported_columns() -> dict[str, ItemColumn]:
    """Return the columns of scores that stand in what is exported for use elsewhere.

    Examples
    --------
    >>> from deep.model import SCORE_COLUMNS, exported_columns
    >>> [name for name in SCORE_COLUMNS if name not in exported_columns()]
    ['p_uniform', 'p_uncalibrated']
    """
    return {name: column for name, column in SCORE_COLUMNS.items() if column.exported}


def schema_of(*tables: Mapping[str, ItemColumn]) -> "pa.Schema":
    """Return the columns of tables as Arrow has them."""
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(one.type)) for table in tables for name, one in table.items()])


def records_of(table: Mapping[str, ItemColumn], scores: object) -> list[dict[str, Any]]:
    """Return the cells of a table of scores as JSON values, by row."""
    values = {name: column.values(column.cells(scores)) for name, column in table.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def column_lines(columns: Iterable[ItemColumn]) -> Iterator[str]:
    """Yield a line for people on each column, and one on neighbours that mean the same.

    Examples
    --------
    >>> from deep.model import SCORE_COLUMNS, column_lines
    >>> list(column_lines(SCORE_COLUMNS.values()))[1]
    'p_low, p_high    its 90 % interval'
    """
    groups = groupby(columns, key=lambda column: column.meaning)
    lines = [(", ".join(column.name for column in group), meaning) for meaning, group in groups]
    width = max(len(names) for names, _ in lines) + 3
    yield from (f"{names:<{width}}{meaning}" for names, meaning in lines)
