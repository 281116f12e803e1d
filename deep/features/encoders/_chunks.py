"""A text cut into pieces that fit a model, at ends of sentences, then between words, then anywhere; nothing is lost."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from deep._text import sentence_spans

Span = tuple[int, int]
Count = Callable[[Sequence[str]], list[int]]


def fitting_spans(text: str, count: Count, budget: int, spans: Sequence[Span] | None = None) -> list[Span]:
    """Return spans of at most `budget` tokens: the sentences of a text, halved where one is longer.

    Parameters
    ----------
    text : str
    count : callable
        Gives the number of tokens of each of several texts.
    budget : int
        At least 1. A single character that is more tokens than this is kept whole.
    spans : sequence of (int, int), optional
        In place of the sentences.

    Examples
    --------
    >>> from deep.features.encoders._chunks import fitting_spans
    >>> words = lambda texts: [len(text.split()) for text in texts]
    >>> text = "Rain fell. The wind rose and the river left its bed."
    >>> [text[start:end] for start, end in fitting_spans(text, words, 5)]
    ['Rain fell.', 'The wind rose and the', 'river left its bed.']
    """
    spans = sentence_spans(text) if spans is None else spans
    fitting: list[Span] = []
    for span, length in zip(spans, count([text[start:end] for start, end in spans]), strict=True):
        if length <= budget or span[1] - span[0] == 1:
            fitting.append(span)
        else:
            fitting += fitting_spans(text, count, budget, _halves(text, *span))
    return fitting


def _halves(text: str, start: int, end: int) -> list[Span]:
    """Cut a span at the white space nearest to its middle, or else in the middle."""
    middle = (start + end) // 2
    blanks = [i for i in range(start + 1, end - 1) if text[i].isspace()]
    cut = min(blanks, key=lambda i: abs(i - middle), default=middle)
    left, right = text[start:cut].rstrip(), text[cut:end].lstrip()
    return [(start, start + len(left)), (end - len(right), end)]


def chunk_spans(text: str, count: Count, budget: int) -> list[Span]:
    """Return spans of at most `budget` tokens, each of as many whole sentences in a row as fit.

    Parameters are those of :func:`fitting_spans`.

    Examples
    --------
    >>> from deep.features.encoders._chunks import chunk_spans
    >>> words = lambda texts: [len(text.split()) for text in texts]
    >>> text = "Rain fell. It was cold. The river left its bed."
    >>> [text[start:end] for start, end in chunk_spans(text, words, 5)]
    ['Rain fell. It was cold.', 'The river left its bed.']
    """
    spans = fitting_spans(text, count, budget)
    lengths = count([text[start:end] for start, end in spans])
    firsts, used = [0] if spans else [], 0
    for i, length in enumerate(lengths):
        if used and used + length > budget:
            firsts.append(i)
            used = 0
        used += length
    packed = [(spans[first][0], spans[last - 1][1]) for first, last in pairwise([*firsts, len(spans)])]
    # Tokens of a whole can be more than those of its parts, where white space counts.
    return fitting_spans(text, count, budget, packed)
