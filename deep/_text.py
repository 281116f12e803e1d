"""Sentences of a text, with their places in it; and what text can be stored."""

import re

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
        text = SPACED_INITIAL.sub(r"\1 ", text)
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
