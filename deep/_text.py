"""Sentences of a text, with their places in it; and what text can be stored."""

__all__ = ["is_storable", "sentence_spans"]


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
    from sentencex import get_sentence_boundaries

    spans = []
    for boundary in get_sentence_boundaries(language, text):
        piece = text[boundary["start_index"] : boundary["end_index"]]
        start = boundary["start_index"] + len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        if end > start:
            spans.append((start, end))
    return spans
