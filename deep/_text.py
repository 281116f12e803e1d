"""Sentences of a text, with their places in it; text that can be stored; text in columns."""

import re
from collections.abc import Sequence

SPACED_INITIAL = re.compile(r"([A-Z](?<!\w[A-Z])\s*)[^\S\x00-\x7f](?=\.)")
"""One capital, and white space of several bytes before its full stop: there sentencex 1.0.32 panics."""


def is_storable(text: str) -> bool:
    """Return whether files and databases can hold a text: no NUL, no lone surrogate."""
    return "\0" not in text and (text.isascii() or text == text.encode(errors="replace").decode())


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Return (start, end) of every sentence of a text, without the white space around it.

    Parameters
    ----------
    text : str
    language : str, default='en'
        A code that sentencex knows; what it knows of abbreviations depends on it.

    Returns
    -------
    list of (int, int)
        In order, not overlapping; together they hold every character that is not white space.

    Examples
    --------
    >>> from deep._text import sentence_spans
    >>> text = "Dr. Wu paid 3.5 million. Really?  Yes."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. Wu paid 3.5 million.', 'Really?', 'Yes.']
    """
    from sentencex import segment

    if not text.isascii():
        # The splitter takes no lone surrogates; in their place a character each, so that positions stay.
        text = SPACED_INITIAL.sub(r"\1 ", text.encode(errors="replace").decode())
    spans = []
    end = 0
    for piece in segment(language, text):
        # The white space between sentences may be other than in the text, so that lengths do not add up to positions.
        sentence = piece.strip()
        if sentence:
            start = text.index(sentence, end)
            end = start + len(sentence)
            spans.append((start, end))
    return spans


def listed(names: Sequence[str], most: int) -> str:
    """Return names in a line, and beyond the first `most` how many more there are.

    Examples
    --------
    >>> listed(["news", "chat", "law"], 2)
    'news, chat and 1 others'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} others" if more > 0 else "")


def table(rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return rows in columns, the last `right` of them flush right.

    Examples
    --------
    >>> print(table([("DATASET", "N"), ("fect", "410")], right=1))
    DATASET    N
    fect     410
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = len(widths) - right
    return "\n".join(
        "  ".join(
            cell.rjust(width) if position >= first else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
