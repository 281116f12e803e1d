"""The records that every room shares: an example, a judgment of it, and a matrix of votes."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args, overload

import numpy as np
import numpy.typing as npt

from deep._util.checks import (
    AnyVotes,
    Floats,
    Labels,
    Texts,
    Votes,
    as_floats,
    check_consistent_length,
    check_kind,
    check_labels,
    check_votes,
)
from deep._util.frames import Frame, FrameVotes, Layout, votes_to_frame
from deep._util.join import read_frame
from deep._util.names import check_lookalikes, check_name, family_of, html_table, listed, visible_form
from deep._util.scales import BINARY, Scale, answer_columns, infer_scales, numbers_of_votes, scale_sentence, scales_of
from deep.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["ABSTAIN", "FAILURE_REASONS", "UNASKED_REASONS", "Example", "Judgment", "Reason", "Scale", "VoteMatrix"]

T = TypeVar("T")

ABSTAIN = -1
"""The entry of a vote matrix where a voter gave no vote, whatever the reason."""

# The reason of a missing vote. Only 1 and 0 are votes; nothing else is ever coerced to one.
Reason = Literal["abstained", "failed", "no_source", "not_asked", "refused", "truncated", "unparsable"]

# The reasons that are failures of the judge: it was asked, and gave no usable answer.
FAILURE_REASONS = ("failed", "refused", "truncated", "unparsable")

# The reasons that say nothing of the judge: the row has no source or no claim; the run was stopped before.
UNASKED_REASONS = ("no_source", "not_asked")


@dataclass(frozen=True, slots=True)
class Example:
    """One claim to be checked against one source.

    Parameters
    ----------
    source : str
        The document that the claim must follow from.
    claim : str
        The text to check.
    example_id : str
        Unique within `dataset`.
    label : {0, 1, None}
        1 consistent, 0 not, None unknown.
    dataset : str or None
        Where the example comes from; the unit that is held out.
    document_id : str or None
        Examples that share it share their source, and never straddle a fold.
    question : str or None
        The question that the claim answers, where there is one. It is no evidence: the source has to bear out the
        claim.

    Examples
    --------
    >>> from deep import Example
    >>> Example("The river rose by 14 cm.", "The river fell.", "a", label=0).label
    0
    """

    source: str
    claim: str
    example_id: str
    label: int | None = None
    dataset: str | None = None
    document_id: str | None = None
    question: str | None = None

    def __post_init__(self) -> None:
        if self.label not in (None, 0, 1):
            raise InputError(f"`label` must be 0, 1 or None. Got {self.label!r} in example {self.example_id!r}.")

    @property
    def has_texts(self) -> bool:
        """Return whether there is anything to judge; a retrieval that found nothing leaves no source."""
        return bool(self.source.strip() and self.claim.strip())


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judgment of one example by one judge.

    Parameters
    ----------
    vote : {1, 0, -1}
        1 consistent, 0 inconsistent, -1 no vote.
    reason : {'abstained', 'failed', 'no_source', 'not_asked', 'refused', 'truncated', 'unparsable'}, optional
        Why there is no vote; given exactly where `vote` is -1. The judge was not asked where the row has no source or
        claim, or where the run was stopped before.
    score : float, optional
        A soft vote: probability or grade, in the judge's own unit.
    raw_text : str, optional
        The reply as it came.
    model : str, optional
        The model that answered, as the endpoint named it.
    tokens : mapping of str to int
        Usage by kind: input, cached, output, reasoning.
    cost : float, optional
        US dollars; None where the price is unknown, which is not 0.
    seconds : float, optional
        Wall time of the call.
    rationale : str, optional
        The judge's reasoning, where it gives one.
    evidence : tuple of str
        Excerpts or findings the judge refers to.
    samples : tuple of int
        The votes of the samples whose majority this is, -1 where one gave none; empty where there was one question.
    repaired : bool, default=False
        Whether the answer was read from a repair turn: a second request, which asked for the answer alone.

    Examples
    --------
    >>> from deep import Judgment
    >>> Judgment(1).reason is None, Judgment(-1, "refused").vote
    (True, -1)
    """

    vote: int
    reason: Reason | None = None
    score: float | None = None
    raw_text: str | None = None
    model: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    seconds: float | None = None
    rationale: str | None = None
    evidence: tuple[str, ...] = ()
    samples: tuple[int, ...] = ()
    repaired: bool = False

    def __post_init__(self) -> None:
        if self.vote not in (1, 0, ABSTAIN):
            raise InputError(f"`vote` must be -1, 0 or 1. Got {self.vote!r}.")
        if (self.vote == ABSTAIN) != (self.reason is not None):
            raise InputError(f"`reason` must be given exactly where `vote` is -1. Got {self.vote!r}, {self.reason!r}.")
        if self.reason is not None and self.reason not in get_args(Reason):
            allowed = ", ".join(get_args(Reason))
            raise InputError(f"`reason` must be one of {allowed}. Got {self.reason!r}.")
        for name, default, kind, phrase in _FIELDS:
            value = getattr(self, name)
            fits = value is default or (isinstance(value, kind) if isinstance(kind, type | tuple) else kind(value))
            if not fits:
                raise InputError(f"`{name}` of a judgment must be {phrase}. Got {value!r:.80}.")


def _is_number(value: object) -> bool:
    # The bounds keep out infinities and whole numbers too large for a float; NaN fails the first comparison. Scores in
    # a table have a narrower bound, `MAX_SCORE_SIZE`, which is checked where tables are read.
    return isinstance(value, Real) and bool(value < 1e300) and not value < -1e300


def _are_counts(value: object) -> bool:
    # `dict` comes first, for the check by the abstract class takes longer; what is no mapping fails by its None.
    counts = list(value.values()) if isinstance(value, dict | Mapping) else [None]
    # Above 2^53 a reader of JSON, for which numbers are floats, would get another count.
    return all(isinstance(n, Integral) and 0 <= int(n) < 1 << 53 for n in counts)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)


def _are_votes(value: object) -> bool:
    return isinstance(value, list | tuple) and all(vote in (1, 0, ABSTAIN) for vote in value)


# Each field: its name, its default, its type or a test of its value, and the words of the error. The default itself is
# not checked; `...` stands for none, so that the field always is. All that judges give is written into one table.
_FIELDS: tuple[tuple[str, object, type | tuple[type, ...] | Callable[[Any], bool], str], ...] = (
    *((name, None, _is_number, "a finite number") for name in ("score", "cost", "seconds")),
    *((name, None, str, "text") for name in ("raw_text", "model", "rationale")),
    ("tokens", ..., _are_counts, "whole numbers by kind"),
    ("evidence", (), _are_texts, "a tuple of texts"),
    ("samples", (), _are_votes, "a tuple of -1, 0 and 1"),
    ("repaired", False, (bool, np.bool_), "True or False"),
)


def _texts(values: Iterable[object], name: str) -> list[str]:
    """Return the values of a list as plain strings."""
    check_kind(values, Iterable, name, "a list")
    return [str(value) for value in values]


def _names(values: Iterable[object], n: int, name: str) -> Texts:
    """Return `n` plain strings."""
    names = np.array(_texts(values, name), dtype=object)
    check_consistent_length(names, n, name)
    return names


@dataclass(frozen=True, eq=False)
class VoteMatrix:
    """Votes of k voters on n examples, with datasets, labels and documents.

    Parameters
    ----------
    votes : array-like of shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote; stored as int8. With `scales`, the judges' answers as they gave them,
        NaN where there is none: a vote of 1 is then an answer from the middle of the scale on.
    item_ids : sequence of str, length n_examples
        Unique within a dataset.
    voter_names : sequence of str, length n_voters
        Unique, opaque, matched exactly.
    datasets : sequence of str, length n_examples
        The dataset of each row.
    labels : array-like of shape (n_examples,)
        1, 0, or -1 where unknown; stored as int8.
    document_ids : sequence of str, optional
        Default: every example is its own document.
    families : mapping of str to str, optional
        Dataset name to the family it belongs to; a dataset not named is its own family.
    scales : sequence of str, length n_voters, optional
        Of judges that do not all vote: 'binary', 'unit', '1-5', '5-1' where 5 is the worst, 'A-E', 'bad<fair<good'.
    answers : ndarray of float, shape (n_examples, n_voters), optional
        Places on the scales, 0 the worst and 1 the best answer, NaN where there is none; None where all judges vote.
    checked : bool, default=False
        True where every column was checked as it was read, and has its own type: nothing is then looked at again.

    Raises
    ------
    InputError
        Lengths differ, a vote or label is out of range, a voter name is repeated, an example id is repeated within a
        dataset, or a name is no printable text on one line.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> m = VoteMatrix(votes=[[1, 0], [1, -1]], item_ids=["a", "b"], voter_names=["strict", "lenient"],
    ...                datasets=["news", "news"], labels=[1, 0])
    >>> m.shape
    (2, 2)
    >>> m.rows(m.labels == 1).item_ids.tolist()
    ['a']
    >>> graded = VoteMatrix([[1, 4], [0, 2]], ["a", "b"], ["strict", "grader"], ["news"] * 2, [1, 0],
    ...                     scales=["binary", "1-5"])
    >>> graded.answers.tolist(), graded.votes.tolist()
    ([[1.0, 0.75], [0.0, 0.25]], [[1, 1], [0, 0]])
    """

    votes: Votes
    item_ids: Texts
    voter_names: tuple[str, ...]
    datasets: Texts
    labels: Labels
    document_ids: Texts | None = None
    families: Mapping[str, str] = field(default_factory=dict)
    scales: tuple[Scale, ...] | None = None
    answers: Floats | None = None

    def __init__(
        self,
        votes: npt.ArrayLike,
        item_ids: Iterable[object],
        voter_names: Iterable[object],
        datasets: Iterable[object],
        labels: npt.ArrayLike,
        document_ids: Iterable[object] | None = None,
        families: Mapping[str, str] | None = None,
        scales: Iterable[str | Scale] | None = None,
        answers: Floats | None = None,
        *,
        checked: bool = False,
    ) -> None:
        # A constructor by hand, since its arguments may be any lists and the fields have one type each. The order is
        # that of the fields.
        values = (votes, item_ids, voter_names, datasets, labels, document_ids, families or {}, scales, answers)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)
        if not checked:
            self._check()

    def _check(self) -> None:
        """Check each column, and give it its type."""
        voters = tuple(_texts(self.voter_names, "voter_names"))
        check_kind(self.families, Mapping, "families", "a mapping of dataset to family")
        columns: dict[str, Any] = {"votes": self.votes}
        if self.scales is not None and self.answers is None:
            columns = _read_numbers(self.votes, [Scale.parse(scale) for scale in self.scales], voters)
        columns["votes"] = matrix = check_votes(columns["votes"], name="votes", voters=voters)
        n = len(matrix)
        values: dict[str, object] = {
            **columns,
            "labels": _check_partial_labels(self.labels, n),
            "voter_names": voters,
            "item_ids": _names(self.item_ids, n, "item_ids"),
            "datasets": _names(self.datasets, n, "datasets"),
            "document_ids": None if self.document_ids is None else _names(self.document_ids, n, "document_ids"),
            "families": dict(self.families),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        # Names go to terminals, files and pages, so that what moves a cursor or looks like another name is refused
        # here, once.
        groups = {"voter_names": voters, "datasets": self.dataset_names, "families": self.families.values()}
        for param, names in groups.items():
            for name in names:
                check_name(name, param)
            check_lookalikes(names, param)
        self._check_unique()

    def _check_unique(self) -> None:
        if len(self.voter_names) != self.votes.shape[1]:
            raise InputError(
                f"`voter_names` must have {self.votes.shape[1]} entries, one per column. Got {len(self.voter_names)}."
            )
        repeated = _first_repeated(self.voter_names)
        if repeated is not None:
            raise InputError(f"`voter_names` must be unique. Got {repeated!r} more than once.")
        pair = _first_repeated(zip(self.datasets, self.item_ids, strict=True))
        if pair is not None:
            raise InputError(f"`item_ids` must be unique within a dataset. Got {pair[1]!r} twice in {pair[0]!r}.")
        # Only ids with an odd character can look like another: nearly all tables skip the comparison.
        if any(visible_form(name) != name for name in self.item_ids):
            for dataset in self.dataset_names:
                check_lookalikes(self.item_ids[self.datasets == dataset], "item_ids")

    @property
    def example_ids(self) -> Texts:
        """Return `item_ids`, by the earlier name, with a warning."""
        warnings.warn("`VoteMatrix.example_ids` is `VoteMatrix.item_ids` now.", FutureWarning, stacklevel=2)
        return self.item_ids

    def __repr__(self) -> str:
        return "\n".join([*self._said(), "its items and votes: .to_frame()"])

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{np.mean(column >= 0):.2f}", f"{np.mean(column[column >= 0]):.2f}" if (column >= 0).any() else "")
            for name, column in zip(self.voter_names, self.votes.T, strict=True)
        ]
        return html_table(self._said(), ("voter", "votes on", "says consistent"), rows)

    def _said(self) -> list[str]:
        """Return lines on the matrix for people."""
        n, k = self.shape
        return [
            f"VoteMatrix: {n:,} items x {k} voters, {int((self.labels >= 0).sum()):,} items labeled",
            f"voters: {listed(self.voter_names, rest='more')}",
            f"datasets: {listed(self.dataset_names, rest='more')}",
            *([] if self.scales is None else [scale_sentence(self.voter_names, self.scales)]),
        ]

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n_examples, n_voters)."""
        return self.votes.shape[0], self.votes.shape[1]

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Return the names of the datasets, sorted."""
        return tuple(sorted(set(self.datasets)))

    def rows(self, mask: npt.NDArray[np.bool_ | np.integer]) -> Self:
        """Return the examples where `mask` (bool of length n_examples, or positions) holds."""
        # Rows of a checked matrix need no second check, which would cost more than all else on many rows.
        return self.with_columns(
            votes=self.votes[mask],
            item_ids=self.item_ids[mask],
            datasets=self.datasets[mask],
            labels=self.labels[mask],
            document_ids=None if self.document_ids is None else self.document_ids[mask],
            answers=None if self.answers is None else self.answers[mask],
        )

    @property
    def answers_or_votes(self) -> AnyVotes:
        """Return places on scales where some judges give grades or scores, else votes."""
        return self.votes if self.answers is None else self.answers

    def judges(self, columns: Sequence[int] | npt.NDArray[np.intp]) -> Self:
        """Return some judges, by their positions."""
        names, own = tuple(self.voter_names[column] for column in columns), {"votes": self.votes[:, columns]}
        if self.scales is not None and self.answers is not None:
            own = answer_columns(self.answers[:, columns], tuple(self.scales[column] for column in columns))
        return self.with_columns(voter_names=names, **own)

    def with_columns(self, **columns: Any) -> Self:
        """Return the matrix with some columns changed, each of its own type; none is checked again."""
        return type(self)(**{**vars(self), **columns}, checked=True)

    def answers_on(self, scale: Scale, column: int) -> Floats:
        """Return the answers of a judge as places on another scale than its own, NaN where there is none or outside.

        Raises
        ------
        InputError
            They are votes, and the scale has none.
        """
        own = BINARY if self.scales is None else self.scales[column]
        places = numbers_of_votes(self.votes[:, column]) if self.answers is None else self.answers[:, column]
        # Not by `==`: `declared` and `is_open` say how a scale became known, and change no place on it.
        if (own.low, own.high, own.words) == (scale.low, scale.high, scale.words):
            return places
        result = scale.places(own.low + places * (own.high - own.low))
        if own.binary and (outside := np.isnan(result) & ~np.isnan(places)).any():
            row = int(np.flatnonzero(outside)[0])
            raise InputError(
                f"`votes` must hold answers of {self.voter_names[column]!r} on its scale {scale}. Got a vote of "
                f"{self.votes[row, column]} at row {row}."
            )
        return result

    def with_answers(
        self,
        answers: npt.ArrayLike,
        names: Sequence[str] = (),
        scales: Mapping[str, str | Scale] = MappingProxyType({}),
    ) -> Self:
        """Return the matrix in which grades or scores stand in the place of votes, or beside them as other judges.

        Parameters
        ----------
        answers : array-like of shape (n_examples, n_judges)
            In each judge's own unit; NaN where there is none.
        names : sequence of str, optional
            Of the judges; default "score 1", ...
        scales : mapping of str to str, optional
            Of some of them; others are recognised by the values, any unit among them.
        """
        numbers = as_floats(answers, "scores")
        if numbers.ndim != 2:
            raise InputError(f"`scores` must be two-dimensional (examples x scorers). Got {numbers.ndim} dimension(s).")
        check_consistent_length(numbers, len(self.votes), "scores")
        names = tuple(names) or tuple(f"score {j + 1}" for j in range(numbers.shape[1]))
        if len(names) != numbers.shape[1]:
            raise InputError(f"`score_names` must be one a column of `scores`, {numbers.shape[1]}. Got {len(names)}.")
        if np.isinf(numbers).any():
            row, column = np.argwhere(np.isinf(numbers))[0].tolist()
            raise InputError(f"`scores` must be finite or NaN. Got {numbers[row, column].item()!r} at row {row}.")
        columns = dict(zip(names, numbers.T, strict=True))
        own_scales = scales_of(scales, names)
        # A score may be of any unit, as a log-likelihood; grades in a table of votes may not, since a mistake would
        # pass for one.
        scores = infer_scales({name: own for name, own in columns.items() if name not in own_scales}, any_unit=True)
        own_scales |= {name: replace(scale, declared=True) for name, scale in scores.items()}
        others = [name for name in names if name not in self.voter_names]
        voters = (*self.voter_names, *others)
        of_judges = list(self.scales or [BINARY] * len(self.voter_names)) + [BINARY] * len(others)
        places = np.full((len(numbers), len(voters)), np.nan)
        places[:, : self.shape[1]] = numbers_of_votes(self.votes) if self.answers is None else self.answers
        for name, own in columns.items():
            at = voters.index(name)
            # A judge that votes and has no score at all, as a function beside graders, keeps its votes.
            if name in others or not np.isnan(own).all():
                of_judges[at], places[:, at] = own_scales[name], own_scales[name].places(own)
        return self.with_columns(voter_names=voters, **answer_columns(places, tuple(of_judges)))

    @classmethod
    def from_frame(
        cls,
        frame: Frame | npt.NDArray[np.generic],
        *,
        layout: Layout | None = None,
        dataset: str | None = None,
        voter_names: Iterable[object] | None = None,
        scales: Mapping[str, str | Scale] | None = None,
    ) -> Self:
        """Make a vote matrix of a data frame, by the rules of :func:`deep.read_votes`: no cell is coerced into a vote.

        Parameters
        ----------
        frame : data frame of pandas or Polars, pyarrow table, or ndarray of shape (n_examples, n_voters)
            Votes and labels are 1, 0 or empty (None, NaN, null), also as text or booleans; ids are text or whole
            numbers. A pandas index counts as columns if it has a name. An array is a label matrix of snorkel, with -1
            where a labeling function abstains; its items get the numbers of their rows as ids, and `votes` gives it
            back.
        layout : {'crowd-kit', 'long', 'wide'}, optional
            Default: as the columns show. ``wide``: a row an item, ``item_id`` and a column a voter. ``long``: a row an
            item and judge, ``item_id``, ``judge``, ``vote``. Both may have ``dataset``, ``label``, ``document_id`` and
            ``family``. ``crowd-kit``: ``task``, ``worker``, ``label``, where a label is a vote.
        dataset : str, optional
            The dataset of all rows; to be given where there is no column ``dataset``.
        voter_names : iterable of str, optional
            The voters of an array, for example ``[lf.name for lf in lfs]``.
        scales : mapping of str to str, optional
            Of judges that give grades or scores, as :func:`deep.read_votes` takes them.

        Raises
        ------
        InputError
            A cell is neither vote nor empty, a column is missing, an item comes twice: with column and row, from 0.

        Examples
        --------
        >>> import pandas as pd
        >>> from deep import VoteMatrix
        >>> frame = pd.DataFrame({"task": ["a", "a", "b"], "worker": ["Ann", "Bob", "Ann"], "label": [1, 0, 0]})
        >>> votes = VoteMatrix.from_frame(frame, dataset="news")
        >>> votes.voter_names, votes.votes.tolist()
        (('Ann', 'Bob'), [[1, 0], [0, -1]])
        """
        if isinstance(frame, np.ndarray):
            if layout is not None or dataset is None or voter_names is None:
                raise InputError(
                    "`dataset` and `voter_names` must be given for an array of votes, and no `layout`. Got it "
                    "otherwise."
                )
            n, families = len(frame), {dataset: family} if (family := family_of(dataset)) != dataset else {}
            return cls(frame, map(str, range(n)), voter_names, [dataset] * n, np.full(n, ABSTAIN), families=families)
        if voter_names is not None:
            raise InputError(
                "`voter_names` must be given with an array alone. Got them with a frame, which has columns."
            )
        return cls(**read_frame(frame, layout=layout, dataset=dataset, scales=scales))

    @overload
    def to_frame(self, *, layout: Layout = "wide", library: Literal["pandas"] = "pandas") -> "pd.DataFrame": ...
    @overload
    def to_frame(self, *, layout: Layout = "wide", library: Literal["polars"]) -> "pl.DataFrame": ...
    def to_frame(self, *, layout: Layout = "wide", library: str = "pandas") -> object:
        """Return the votes as a data frame that `from_frame` reads.

        Parameters
        ----------
        layout : {'crowd-kit', 'long', 'wide'}, default='wide'
            As in `from_frame`. A crowd-kit frame is of one dataset, and holds votes alone: no labels, and neither items
            nor voters without a vote.
        library : {'pandas', 'polars'}, default='pandas'
            Whose frame; Polars must be installed.

        Raises
        ------
        InputError
            A voter has the name of another column of a wide frame, or several datasets shall become one of crowd-kit's.

        Examples
        --------
        >>> from deep import VoteMatrix
        >>> VoteMatrix([[1, -1]], ["a"], ["strict", "lenient"], ["news"], [0]).to_frame()
          dataset item_id  label  strict  lenient
        0    news       a      0       1     <NA>
        """
        return votes_to_frame(cast(FrameVotes, self), layout, library)

    def family_of(self, dataset: str) -> str:
        """Return the family of a dataset; its own name where none is known."""
        return self.families.get(dataset, dataset)


def _read_numbers(votes: npt.ArrayLike, scales: list[Scale], voters: tuple[str, ...]) -> dict[str, Any]:
    """Return the columns for answers in the judges' own numbers."""
    numbers = as_floats(votes, "votes")
    if numbers.ndim != 2 or numbers.shape[1] != len(scales):
        raise InputError(f"`scales` must be one a column of `votes`. Got {len(scales)} for shape {numbers.shape}.")
    places = np.column_stack([scale.places(column) for scale, column in zip(scales, numbers.T, strict=True)])
    outside = np.argwhere(np.isnan(places) & ~np.isnan(numbers))
    if len(outside):
        row, column = outside[0].tolist()
        raise InputError(
            f"`votes` must lie on their scales or be NaN. Got {numbers[row, column]:g} at row {row}, column {column} "
            f"({voters[column]!r}), whose scale is {scales[column]}."
        )
    return answer_columns(places, tuple(scales))


def _check_partial_labels(labels: npt.ArrayLike, n: int) -> Labels:
    """Return labels as 1, 0 and -1 for none; raise where there is any other."""
    raw = np.asarray(labels)
    check_consistent_length(raw, n, "labels")
    if raw.ndim != 1:
        raise InputError(f"`labels` must be one-dimensional. Got {raw.ndim} dimensions. Give one label for each row.")
    is_labeled = raw != -1
    checked = np.full(n, -1, dtype=np.int8)
    checked[is_labeled] = check_labels(raw[is_labeled], int(is_labeled.sum()), name="labels")
    return checked


def _first_repeated(values: Iterable[T]) -> T | None:
    """Return the first value that stands twice, None where each stands once."""
    distinct: set[T] = set()
    for value in values:
        if value in distinct:
            return value
        distinct.add(value)
    return None
