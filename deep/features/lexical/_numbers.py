"""Numbers of the claim that the source lacks, or has with another unit."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import ClassVar

from deep.features.lexical._analysis import Pair, TokenizedText
from deep.features.lexical._base import LexicalCheck, found_or_missing
from deep.features.lexical._quantities import Quantity, quantities
from deep.records import Judgment

SAME = 1e-14
"""Relative; what floats lose in a multiplication."""

COUNTED = 2.0
"""Up to here, a number in words is as often a pronoun, or the writer's own count, as something that the source says."""

LIST_MARK = re.compile(r"\s*\d{1,2}[.)]\s")


class Numbers(LexicalCheck):
    """Votes 0 where a number of the claim is not in the source, in whatever notation; 1 where all are.

    1,000, 1000, 1k and one thousand are one number, and 1.8 billion is also 1,823 million: a number with decimals or
    a magnitude, or behind a word like *about*, stands for all that round to it. Units are left to :class:`Units`,
    times of day to ``Dates``. "One", "two" and "second" in words are not looked for, nor is the number of a list item.
    """

    name: ClassVar[str] = "numbers"
    look: ClassVar[str] = "numbers in digits or words that the source lacks, after rounding to the claim's precision"
    silent: ClassVar[str] = "the claim has no number but one, two and second in words"

    def _judge(self, pair: Pair) -> Judgment:
        sought = list(_sought(pair.claim))
        values = pair.source.derived("values", _values) if sought else []
        found: list[str] = []
        missing: list[str] = []
        for quantity in sought:
            (found if _is_given(quantity, values) else missing).append(quantity.shown)
        return found_or_missing("numbers", found, missing)


class Units(LexicalCheck):
    """Votes 0 where the source has a number of the claim, but with other units or currencies only; 1 where with its."""

    name: ClassVar[str] = "units"
    look: ClassVar[str] = "numbers that the source has with another unit, currency or per cent only"
    silent: ClassVar[str] = "the claim has no number with a unit, or the source has its numbers without any"

    def _judge(self, pair: Pair) -> Judgment:
        found: list[str] = []
        missing: list[str] = []
        for quantity in _sought(pair.claim):
            if not quantity.unit:
                continue
            by_unit = pair.source.derived("values by unit", _values_by_unit)
            units = {unit for unit, values in by_unit.items() if _is_given(quantity, values)}
            if quantity.unit in units:
                found.append(quantity.shown_with_unit)
            elif units - {""}:
                missing.append(quantity.shown_with_unit)
        return found_or_missing("units", found, missing)


def _quantities(text: TokenizedText) -> list[Quantity]:
    return text.derived("quantities", quantities)


def _values(text: TokenizedText) -> list[float]:
    return sorted(value for quantity in _quantities(text) for value in quantity.values)


def _values_by_unit(text: TokenizedText) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for quantity in _quantities(text):
        found.setdefault(quantity.unit, []).extend(quantity.values)
    return {unit: sorted(values) for unit, values in found.items()}


def _sought(claim: TokenizedText) -> Iterator[Quantity]:
    for quantity in _quantities(claim):
        if not (_is_label(quantity, claim) or (quantity.words and max(quantity.values) <= COUNTED)):
            yield quantity


def _is_label(quantity: Quantity, claim: TokenizedText) -> bool:
    """Return whether a number counts nothing: that of a list item, or in a name like COVID-19."""
    if quantity.start == 0:
        return LIST_MARK.match(claim.text) is not None
    before, number = claim.words[quantity.start - 1 : quantity.start + 1]
    if not before[0].isupper():
        return False
    name = f"{before}-{number}"
    if claim.text.endswith(name, 0, claim.ends[quantity.start]):
        return True
    return name in (claim.derived("hyphened", _hyphened) if len(name.split()) == 1 else claim.text)


def _hyphened(text: TokenizedText) -> str:
    """Return the pieces between blanks that hold a hyphen, each once: a short text to look for many names in."""
    return "\n".join(dict.fromkeys(part for part in text.text.split() if "-" in part))


def _is_among(value: float, values: list[float], step: float) -> bool:
    tolerance = max(step / 2, SAME * max(1.0, value))
    at = bisect_left(values, value - tolerance)
    return at < len(values) and values[at] <= value + tolerance


def _is_given(quantity: Quantity, values: list[float]) -> bool:
    """Return whether a number, or what it stands for, is among sorted values."""
    return any(_is_among(value, values, quantity.step) for value in quantity.values)
