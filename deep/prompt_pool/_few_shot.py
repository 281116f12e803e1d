"""Labeled examples that a prompt shows: which of them, for which example."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from deep.exceptions import InputError
from deep.prompt_pool._material import Material
from deep.records import Example

SELECTION = 1
"""Raised when other examples are chosen from the same ones, since the judge then reads other text."""


@dataclass(frozen=True)
class FewShot:
    """Labeled examples of the user's, a few of which a prompt shows before its question.

    Parameters
    ----------
    examples : sequence of Example
        Those with a label stand for choice, in whatever order; one that holds something like a finished verdict, such
        as ``VERDICT:``, does not.
    shots : int, default=4
        How many are shown: an even number, half of them of each label.
    family_of : callable, default=str
        Returns the family of a dataset; nothing of the family that is asked about is shown.

    Raises
    ------
    InputError
        `shots` is no even number from 2, or there are too few examples of one label.

    Examples
    --------
    >>> from deep import Example
    >>> from deep.prompt_pool import FewShot
    >>> texts = [("It rained.", "It was wet.", 1), ("Ann won.", "Bob won.", 0), ("It snowed.", "Snow fell.", 1)]
    >>> known = [Example(*pair, str(i), label=label, dataset="old") for i, (*pair, label) in enumerate(texts)]
    >>> few = FewShot(known, shots=2)
    >>> [(shot.claim, shot.label) for shot in few.choose(Example("It rained.", "It was dry.", "1", dataset="new"))]
    [('Snow fell.', 1), ('Bob won.', 0)]
    """

    examples: Sequence[Example]
    shots: int = 4
    family_of: Callable[[str], str] = str

    def __post_init__(self) -> None:
        if self.shots < 2 or self.shots % 2:
            raise InputError(f"`shots` must be an even number from 2, half for each label. Got {self.shots!r}.")
        for label in (1, 0):
            n = len({shot.source for shot in self._ranked if shot.label == label})
            if n < self.shots // 2:
                raise InputError(
                    f"`few_shot` must hold {self.shots // 2} documents with an example of label {label}, for "
                    f"{self.shots} shots. Got {n}."
                )

    @cached_property
    def _ranked(self) -> list[Example]:
        """The examples with a label, in an order that depends on their content alone."""
        known = [shot for shot in self.examples if shot.label is not None]
        return sorted((shot for shot in known if not Material(shot.source, shot.claim).tag("verdict")), key=_rank)

    @cached_property
    def version(self) -> str:
        """SHA-256 of all that decides what is shown, 64 hexadecimal digits."""
        said = [f"{_rank(shot)} {shot.label} {shot.dataset!r} {shot.document_id!r}" for shot in self._ranked]
        return sha256("\n".join([f"{SELECTION} {self.shots}", *said]).encode(errors="replace")).hexdigest()

    def choose(self, example: Example) -> tuple[Example, ...]:
        """Return the labeled examples to show with one example.

        Parameters
        ----------
        example : Example
            None of its own dataset or family is shown, nor one that shares its document, its source or its claim.

        Returns
        -------
        tuple of Example
            Half of them of each label, each of another document, in an order that does not tell the labels.

        Raises
        ------
        InputError
            Too few are left.
        """
        chosen = [shot for label in (1, 0) for shot in self._of_label(label, example)]
        return tuple(sorted(chosen, key=_rank))

    def _of_label(self, label: int, example: Example) -> list[Example]:
        chosen: list[Example] = []
        for shot in self._apart(label, example):
            if not any(_same_document(shot, other) for other in chosen):
                chosen.append(shot)
            if len(chosen) == self.shots // 2:
                return chosen
        raise InputError(
            f"`few_shot` must hold {self.shots // 2} documents of other datasets than {example.dataset!r} with an "
            f"example of label {label}. Got {len(chosen)} for example {example.example_id!r}. Give labeled examples "
            "of another dataset, or fewer shots."
        )

    def _apart(self, label: int, example: Example) -> Iterator[Example]:
        """Yield the examples of a label that have nothing in common with the one that is asked about."""
        family, claim = self.family_of(str(example.dataset)), _folded(example.claim)
        for shot in self._ranked:
            strange = self.family_of(str(shot.dataset)) != family and _folded(shot.claim) != claim
            if shot.label == label and strange and not _same_document(shot, example):
                yield shot


def _same_document(one: Example, other: Example) -> bool:
    named = one.document_id is not None and one.document_id == other.document_id
    return named or _folded(one.source) == _folded(other.source)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _rank(example: Example) -> str:
    """Return a hash of the texts, which orders examples at random and always alike."""
    return sha256(f"{len(example.source)} {example.source}{example.claim}".encode(errors="replace")).hexdigest()
