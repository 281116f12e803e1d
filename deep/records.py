"""The records that every room shares: an example, a judgment of it, and a matrix of votes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from deep._checks import Labels, Texts, Votes, check_consistent_length, check_labels, check_votes
from deep._names import check_name
from deep.exceptions import InputError

__all__ = ["ABSTAIN", "Example", "Judgment", "Reason", "VoteMatrix"]

T = TypeVar("T")

ABSTAIN = -1
"""The entry of a vote matrix where a voter gave no vote, whatever the reason."""

Reason = Literal["abstained", "failed", "refused", "truncated", "unparsable"]
"""The reason of a missing vote. Only 1 and 0 are votes; nothing else is ever coerced to one."""


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
    """

    source: str
    claim: str
    example_id: str
    label: int | None = None
    dataset: str | None = None
    document_id: str | None = None

    def __post_init__(self) -> None:
        if self.label not in (None, 0, 1):
            raise InputError(f"`label` must be 0, 1 or None. Got {self.label!r} in example {self.example_id!r}.")


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judgment of one example by one judge.

    Parameters
    ----------
    vote : {1, 0, -1}
        1 consistent, 0 inconsistent, -1 no vote.
    reason : {'abstained', 'failed', 'refused', 'truncated', 'unparsable'}, optional
        Why there is no vote; given exactly where `vote` is -1.
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


def _names(values: Iterable[object], n: int, name: str) -> Texts:
    """Return `n` plain strings."""
    names = np.array([str(value) for value in values], dtype=object)
    check_consistent_length(names, n, name)
    return names


@dataclass(frozen=True, eq=False)
class VoteMatrix:
    """Votes of k voters on n examples, with what is needed to fit and to hold out.

    Parameters
    ----------
    votes : array-like of shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote; stored as int8.
    example_ids : sequence of str, length n_examples
        Unique within a dataset.
    voter_names : sequence of str, length n_voters
        Unique, opaque, matched exactly.
    datasets : sequence of str, length n_examples
    labels : array-like of shape (n_examples,)
        1, 0, or -1 where unknown; stored as int8.
    document_ids : sequence of str, optional
        Default: every example is its own document.
    families : mapping of str to str, optional
        Dataset name to the family it belongs to; a dataset not named is its own family.

    Raises
    ------
    InputError
        Lengths differ, a vote or label is out of range, a voter name is repeated, an example id is repeated within a
        dataset, or a name is no printable text on one line.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> m = VoteMatrix(votes=[[1, 0], [1, -1]], example_ids=["a", "b"], voter_names=["strict", "lenient"],
    ...                datasets=["news", "news"], labels=[1, 0])
    >>> m.shape
    (2, 2)
    >>> m.rows(m.labels == 1).example_ids.tolist()
    ['a']
    """

    votes: Votes
    example_ids: Texts
    voter_names: tuple[str, ...]
    datasets: Texts
    labels: Labels
    document_ids: Texts | None = None
    families: Mapping[str, str] = field(default_factory=dict)

    def __init__(
        self,
        votes: npt.ArrayLike,
        example_ids: Iterable[object],
        voter_names: Iterable[object],
        datasets: Iterable[object],
        labels: npt.ArrayLike,
        document_ids: Iterable[object] | None = None,
        families: Mapping[str, str] | None = None,
    ) -> None:
        voters = tuple(str(name) for name in voter_names)
        matrix = check_votes(votes, name="votes", voters=voters)
        n = len(matrix)
        values: dict[str, object] = {
            "votes": matrix,
            "labels": _check_partial_labels(labels, n),
            "voter_names": voters,
            "example_ids": _names(example_ids, n, "example_ids"),
            "datasets": _names(datasets, n, "datasets"),
            "document_ids": None if document_ids is None else _names(document_ids, n, "document_ids"),
            "families": dict(families or {}),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        named = {"voter_names": voters, "datasets": self.dataset_names, "families": self.families.values()}
        for param, given in named.items():
            for name in given:
                check_name(name, param)
        self._check_unique()

    def _check_unique(self) -> None:
        if len(self.voter_names) != self.votes.shape[1]:
            raise InputError(
                f"`voter_names` must have {self.votes.shape[1]} entries, one a column. Got {len(self.voter_names)}."
            )
        repeated = _first_repeated(self.voter_names)
        if repeated is not None:
            raise InputError(f"`voter_names` must be unique. Got {repeated!r} more than once.")
        pair = _first_repeated(zip(self.datasets, self.example_ids, strict=True))
        if pair is not None:
            raise InputError(f"`example_ids` must be unique within a dataset. Got {pair[1]!r} twice in {pair[0]!r}.")

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
        chosen = object.__new__(type(self))
        for name in ("votes", "example_ids", "datasets", "labels"):
            object.__setattr__(chosen, name, getattr(self, name)[mask])
        object.__setattr__(chosen, "document_ids", None if self.document_ids is None else self.document_ids[mask])
        object.__setattr__(chosen, "voter_names", self.voter_names)
        object.__setattr__(chosen, "families", self.families)
        return chosen

    def family_of(self, dataset: str) -> str:
        """Return the family of a dataset; its own name where none is known."""
        return self.families.get(dataset, dataset)


def _check_partial_labels(labels: npt.ArrayLike, n: int) -> Labels:
    raw = np.asarray(labels)
    check_consistent_length(raw, n, "labels")
    known = raw != -1
    checked = np.full(n, -1, dtype=np.int8)
    checked[known] = check_labels(raw[known], int(known.sum()), name="labels")
    return checked


def _first_repeated(values: Iterable[T]) -> T | None:
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
