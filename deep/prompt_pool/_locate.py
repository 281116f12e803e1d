"""Find a quotation in the text that it was taken from, and its place there."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

Span = tuple[int, int]
"""Where a passage begins, and where it ends: the position behind its last character."""

_QUOTES = frozenset("'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u00ab\u00bb\u2039\u203a")
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
_MARKUP = frozenset("*_#")
_EDGES = " '.,;:"


@lru_cache(maxsize=4096)
def _fold_one(character: str) -> str:
    """Fold a character for comparison: nothing for markup and invisible ones, one sign for all quotes."""
    if character in _QUOTES:
        return "'"
    if character in _DASHES:
        return "-"
    if character.isspace() or unicodedata.category(character) == "Cc":
        return " "
    if character in _MARKUP or unicodedata.category(character) == "Cf":
        return ""
    return unicodedata.normalize("NFKD", character).casefold()


_FOLDED_ASCII = {code: _fold_one(chr(code)) for code in range(128)}


def _fold(text: str) -> tuple[str, Sequence[int]]:
    """Return the text as it is compared, and where each of its characters comes from."""
    if text.isascii():
        same_length = text.translate(_FOLDED_ASCII)  # where nothing is left out: no character becomes two
        if len(same_length) == len(text) and "  " not in same_length and same_length[:1] != " ":
            return same_length, range(len(text))
    folded: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for part in _fold_one(character):
            if part != " " or (folded and folded[-1] != " "):
                folded.append(part)
                origins.append(position)
    return "".join(folded), origins


class SearchableText:
    r"""A text in which quotations are looked for.

    Case, white space, kinds of quotes and dashes, Markdown signs and invisible characters do not count; all else does.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> from deep.prompt_pool import SearchableText
    >>> text = SearchableText("The \u201cold\u201d  bridge\nfell in 1902.")
    >>> text.find('the "old" bridge')
    (0, 17)
    >>> text.find("bridge fell in 1903") is None
    True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded, self._origins = _fold(text)

    def find(self, quotation: str, start: int = 0) -> Span | None:
        """Return the span of a quotation: its first place from `start`, else its first place of all.

        It begins and ends where a word does. Quotes and closing punctuation around it are dropped where it is found
        only without them; None where it is not found, or has no letter and no digit.
        """
        wanted = _fold(quotation)[0].strip()
        for form in dict.fromkeys((wanted, wanted.strip(_EDGES))):
            if any(map(str.isalnum, form)):
                places = self._places(form)
                first = next(places, None)
                if first is not None:
                    return next((place for place in chain([first], places) if place[0] >= start), first)
        return None

    def _places(self, form: str) -> Iterator[Span]:
        at = self._folded.find(form)
        while at >= 0:
            end = at + len(form)
            start, stop = self._origins[at], self._origins[end - 1] + 1
            # A sign such as \u3200 is no letter, though it unfolds to one in brackets.
            if not (self._inside_word(at) or self._inside_word(end)) and any(map(str.isalnum, self.text[start:stop])):
                yield start, stop
            at = self._folded.find(form, at + 1)

    def _inside_word(self, at: int) -> bool:
        pair = self._folded[at - 1 : at + 1] if at else ""
        return len(pair) == 2 and pair.isalnum()


def around(text: str, span: Span, margin: int) -> str:
    """Return a passage with up to `margin` characters on either side, cut at white space.

    Examples
    --------
    >>> from deep.prompt_pool import around
    >>> around("It rained all day and snowed all night.", (22, 28), margin=6)
    'and snowed all'
    """
    start, end = span
    before, after = text[max(0, start - margin) : start], text[end : end + margin]
    if start > margin:
        before = before.partition(" ")[2]
    if end + margin < len(text):
        after = after.rpartition(" ")[0]
    return before + text[start:end] + after


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same characters as spans in order that do not touch.

    Examples
    --------
    >>> from deep.prompt_pool import merge_spans
    >>> merge_spans([(9, 12), (0, 4), (3, 6)])
    [(0, 6), (9, 12)]
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def covered(span: Span, by: Iterable[Span]) -> int:
    """Return how many characters of a span the others cover.

    Examples
    --------
    >>> from deep.prompt_pool import covered
    >>> covered((0, 10), by=[(8, 20), (2, 4), (3, 5)])
    5
    """
    return sum(max(0, min(span[1], end) - max(span[0], start)) for start, end in merge_spans(by))
