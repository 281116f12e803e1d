"""The scale of a judge's answers, which are held as places on it: 0 its worst end, 1 its best."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import AnyVotes, Floats, Votes, is_votes, quote
from deep.exceptions import InputError

# The most levels of a scale; one of more whole steps is told as a range.
MOST_LEVELS = 16

# An answer counts as a vote of 1 from this place on: the middle of its scale.
VOTE_THRESHOLD = 0.5

# Answers other than 0 and 1, and their share of a column's, below which they are mistakes in a column of votes.
# A stray 2 among votes must be told, not make a scale: a column of so few says as little on its scale as on its judge.
MIN_GRADES, MIN_SHARE_OF_GRADES = 3, 0.1

# The best grade of most scales; those of others end at 7 or 10.
USUAL_BEST_GRADE = 5

# The distance beyond its ends that rounding may put a place at.
EPSILON = 1e-9

# The ways in which a user may write a scale: two numbers or two letters with a sign between them.
NUMBER_PATTERN = r"([+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)"
RANGE_PATTERN = re.compile(rf"{NUMBER_PATTERN}(?:-|\.\.|:){NUMBER_PATTERN}", re.IGNORECASE)
LETTER_RANGE = re.compile("([A-Za-z])-([A-Za-z])")
FORMS = "binary, unit, LOW-HIGH as 1-5 or 0-100 (5-1 where 5 is the worst), LOW..HIGH as -3.5..0, A-E, or bad<fair<good"


@dataclass(frozen=True)
class Scale:
    """The range of a judge's answers.

    Parameters
    ----------
    low, high : float
        The answers that speak most against and most for consistency; `low` is the larger where large numbers are bad.
    words : tuple of str
        Answers that are words, from the worst to the best; their numbers are 0, 1, 2, ...
    binary : bool, default=False
        Whether 0 and 1 are the only answers: votes.
    declared : bool, default=True
        False where it was recognised by the values of a table.
    is_open : bool, default=False
        Whether its ends are the least and the largest score that were seen: one beyond is held there.

    Examples
    --------
    >>> Scale.parse("1-5").places(np.array([1, 4.5, 7])).tolist(), Scale.parse("5-1").places(np.array([1.0])).tolist()
    ([0.0, 0.875, nan], [1.0])
    >>> str(Scale.parse("A-C")), Scale.parse("A-C").answer(1.0)
    ('A<B<C', 'C')
    """

    low: float
    high: float
    words: tuple[str, ...] = ()
    binary: bool = False
    declared: bool = True
    is_open: bool = False

    @classmethod
    def parse(cls, text: "str | Scale", where: str = "") -> "Scale":
        """Return the scale that a text declares."""
        if isinstance(text, Scale):
            return text
        form = text.strip() if isinstance(text, str) else ""
        if form in ("binary", "unit"):
            return cls(0.0, 1.0, binary=form == "binary")
        if ends := LETTER_RANGE.fullmatch(form):
            first, last = map(ord, ends.groups())
            step = 1 if first < last else -1
            form = "<".join(chr(code) for code in range(first, last + step, step))
        words = tuple(word.strip() for word in form.split("<"))
        if 1 < len(words) == len(set(words)) <= MOST_LEVELS and all(words):
            return cls(0.0, len(words) - 1.0, words)
        try:
            low, high = map(float, ends.groups()) if (ends := RANGE_PATTERN.fullmatch(form.lstrip("~"))) else (0.0, 0.0)
        except ValueError:
            low = high = 0.0
        if low == high or not np.isfinite([low, high]).all():
            raise InputError(f"`scale` must be one of {FORMS}. Got {quote(text)}{where}.")
        return cls(low, high, is_open=form.startswith("~"))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        if self.words:
            return "<".join(self.words)
        if (self.low, self.high) == (0, 1):
            return "binary" if self.binary else "unit"
        low, high = (repr(end).removesuffix(".0") for end in (float(self.low), float(self.high)))
        return f"{'~' * self.is_open}{low}{'-' if min(self.low, self.high) >= 0 else '..'}{high}"

    @property
    def n_levels(self) -> int | None:
        """Return how many whole steps it has; None where they are many, or it is a share."""
        span = abs(self.high - self.low)
        whole = float(self.low).is_integer() and float(self.high).is_integer() and 1 < span < MOST_LEVELS
        return 2 if self.binary or len(self.words) == 2 else int(span) + 1 if whole else None

    @property
    def is_share(self) -> bool:
        """Return whether its numbers are shares: from 0 to 1, or in percent."""
        return not self.binary and {self.low, self.high} in ({0.0, 1.0}, {0.0, 100.0}) and not self.words

    def places(self, values: Floats) -> Floats:
        """Return the places of numbers on the scale, NaN where there is none or it lies outside."""
        with np.errstate(invalid="ignore", over="ignore"):
            result = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
            inside = (result >= -EPSILON) & (result <= 1 + EPSILON) & (not self.binary or (result == 0) | (result == 1))
            # The ends of an open scale are those of the data it was recognised on. What lies beyond is held at the end.
            inside |= self.is_open & np.isfinite(result)
        return np.asarray(np.where(inside, np.clip(result, 0.0, 1.0), np.nan))

    def read(self, answer: object) -> float:
        """Return one answer, a number or else a word of the scale, as its number; NaN where it lies outside.

        True is 1 to Python, but not the worst grade of a scale from 1 to 5.
        """
        if isinstance(answer, str) and answer in self.words:
            return float(self.words.index(answer))
        if self.words or isinstance(answer, bool) or not isinstance(answer, int | float):
            return np.nan
        # A whole number may be too large for a float.
        return float(answer) if abs(answer) < sys.float_info.max and self.vote(float(answer)) >= 0 else np.nan

    def vote(self, number: float | None) -> int:
        """Return the vote that a number counts as: 1 from the middle of the scale on, -1 outside it, or for None."""
        return int(binary_votes(self.places(np.array([number], dtype=np.float64)))[0])

    def number(self, place: float) -> float:
        """Return the number at a place, in the judge's own unit; NaN where there is none."""
        value = float(self.low + place * (self.high - self.low))
        return float(round(value)) if abs(value - np.round(value)) < EPSILON else value

    def answer(self, place: float) -> str:
        """Return the answer at a place, as the judge gives it."""
        number = self.number(place)
        return self.words[round(number)] if self.words else f"{number:.6g}"


BINARY = Scale(0.0, 1.0, binary=True)


def binary_votes(places: AnyVotes) -> Votes:
    """Return answers as votes: 1 from the middle of the scale on, 0 below it, -1 where there is none; votes as such."""
    if is_votes(places):
        return places
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isnan(places), -1, places >= VOTE_THRESHOLD), dtype=np.int8)


def answer_columns(answers: Floats, scales: tuple[Scale, ...]) -> dict[str, Any]:
    """Return the columns of a vote matrix that hold answers, given as places on scales; votes where all are."""
    vote = all(one.binary for one in scales)
    return {"votes": binary_votes(answers), "answers": None if vote else answers, "scales": None if vote else scales}


def numbers_of_votes(votes: Votes) -> Floats:
    """Return votes as numbers, NaN where there is none."""
    return np.asarray(np.where(votes < 0, np.nan, votes), dtype=np.float64)


def scales_of(declared: Mapping[str, str | Scale], names: Sequence[str]) -> dict[str, Scale]:
    """Return the scale of each judge that is declared by its name or by a pattern, as ``"gpt-*"``.

    Raises
    ------
    InputError
        A scale cannot be read, or no judge has the name.
    """
    result: dict[str, Scale] = {}
    for pattern, text in declared.items():
        scale = Scale.parse(text, f" for {pattern!r}")
        # A name may itself hold * or [, as `judge[0]`.
        matches = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(f"`scale` must name judges of the table: {', '.join(map(quote, names))}. Got {pattern!r}.")
        result |= dict.fromkeys(matches, scale)
    return result


class UnknownScaleError(InputError):
    """The values of a column do not tell its scale; `column` and `value` say where."""

    def __init__(self, column: str, value: float, why: str) -> None:
        self.column, self.value = column, value
        super().__init__(
            f"`votes` must be votes, grades or shares. Got {value:g} in {quote(column)}, {why} Say its scale with "
            f"`--scale {column}=LOW..HIGH` (`scales`), or leave it out with `--ignore {column}` (`ignore`)."
        )


def infer_scales(columns: Mapping[str, Floats], *, any_unit: bool = False) -> dict[str, Scale]:
    """Return the scale of each column of numbers, by the values of all of them.

    Votes are 0 and 1, with or without a few mistakes; shares lie between; grades are whole numbers or halves, and
    judges of one table that give grades to 5 share the range of all of them, as do those to 10. With `any_unit` all are
    scores: none is a vote, and other numbers range from the least to the largest that is there.

    Raises
    ------
    UnknownScaleError
        The values of a column do not tell.

    Examples
    --------
    >>> unit = np.array([0.2, 0.4, 0.7, np.nan])
    >>> known = infer_scales({"a": np.array([5, 2.5, 4]), "b": np.array([3.0, 1]), "c": unit})
    >>> {name: str(scale) for name, scale in known.items()}
    {'a': '1-5', 'b': '1-5', 'c': 'unit'}
    >>> str(infer_scales({"a": np.array([1.0, 0, 0, 1, 1, 2])})["a"])
    'binary'
    """
    values, counts = {}, {}
    for name, column in columns.items():
        values[name], counts[name] = np.unique(column[~np.isnan(column)], return_counts=True)
    spoilt = {name for name, own in values.items() if not any_unit and _are_spoilt_votes(own, counts[name])}
    graded = [own for name, own in values.items() if name not in spoilt and len(own) and _are_grades(own)]
    # Of graders to 5 and to 10 in one table, each share their range: the best grade of one is no poor one of the other.
    by_top = [[own for own in graded if (own[-1] <= USUAL_BEST_GRADE) == low] for low in (True, False)]
    ranges = [
        Scale(min(np.floor(min(own[0] for own in each)), 1.0), np.ceil(max(own[-1] for own in each)), declared=False)
        for each in by_top
        if each
    ]
    result = {}
    for name, own in values.items():
        shared = next((one for one in ranges if len(own) and one.low <= own[0] and own[-1] <= one.high), None)
        if len(own) == 1 and shared is not None and not any_unit and own[0] <= 1:
            why = "alone, beside judges that give grades: a vote, or the lowest grade?"
            raise UnknownScaleError(name, own[0], why)
        if name in spoilt and shared is not None and own[0] > 0 and _are_grades(own):
            result[name] = shared  # a grader of 1 to 5 that mostly says 1 has no 0 among its answers; votes have
        elif name in spoilt or (not any_unit and np.isin(own, (0, 1)).all()):
            result[name] = replace(BINARY, declared=False)
        elif not len(own) or (own[0] >= 0 and own[-1] <= 1):
            result[name] = Scale(0.0, 1.0, declared=False)
        elif shared is not None and _are_grades(own):
            result[name] = shared
        elif own[0] >= 0 and 10 < own[-1] <= 100:
            result[name] = Scale(0.0, 100.0, declared=False)
        elif any_unit:
            high = own[-1] if own[-1] > own[0] else own[0] + 1
            result[name] = Scale(float(own[0]), float(high), declared=False, is_open=True)
        else:
            outside = own[0] if own[0] < 0 else own[-1]
            raise UnknownScaleError(name, outside, "which is on no usual scale.")
    return result


def _are_spoilt_votes(own: Floats, counts: npt.NDArray[np.intp]) -> bool:
    """Say whether distinct values, ascending, are those of votes with a mistake, or too few to tell any scale."""
    off = (own != 0) & (own != 1)
    n, has_votes = int(counts[off].sum()), not off.all()
    is_rare = n < MIN_GRADES or (has_votes and n < MIN_SHARE_OF_GRADES * counts.sum())
    return bool(off.any() and (is_rare or len(own) == 1 or (has_votes and own[0] < 0)))


def _are_grades(own: Floats) -> bool:
    """Say whether distinct values, ascending, are grades from 0 or 1 to at most 10: whole numbers or halves."""
    return bool(own[0] >= 0 and 1 < own[-1] <= 10 and (own * 2 == np.round(own * 2)).all())  # twice a half is whole


def scale_sentence(names: Iterable[str], scales: Sequence[Scale]) -> str:
    """Return the sentence that says which judges give grades, and on which scale; empty where all vote."""
    groups: dict[str, list[str]] = {}
    for name, scale in zip(names, scales, strict=True):
        if not scale.binary:
            groups.setdefault(f"{scale}{'' if scale.declared else ' (by their values)'}", []).append(name)
    text = "; ".join(f"{scale}: {', '.join(own)}" for scale, own in groups.items())
    return f"Scales of answers: {text}. `--scale NAME=...` declares another." if text else ""
