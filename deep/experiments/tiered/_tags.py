"""Sentences marked in place, and the labels that a judge wrote around them, however the tags came back."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice

from deep.prompt_pool import Material

Span = tuple[int, int]

SIMILAR = 0.6
"""The least similarity, from 0 to 1, at which reworded text is still taken for the sentence."""

TAGS_A_SENTENCE = 8
"""More tags than this are no markup of a turn; the bound keeps the work small, whatever a reply holds."""

_TAG = r"<\s*(/?)\s*({names})"
_TAG_REST = r"(?:\s[^<>]{0,300})?>"
_TOLD_BY = 40
"""Characters beside a tag by which a copy out of the document is known."""

_WORD = re.compile(r"\w+")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TagReading:
    """The labels that tags gave to each sentence.

    Parameters
    ----------
    labels : tuple of (str or None)
        One a sentence: its label, None where no tag stood at it, or several that differ.
    unaligned : tuple of str
        Tags whose text is none of the sentences, as ``label: text``.
    conflicting : tuple of int
        Positions of the sentences with several labels.
    """

    labels: tuple[str | None, ...]
    unaligned: tuple[str, ...] = ()
    conflicting: tuple[int, ...] = ()


@dataclass(slots=True)
class _TextPiece:
    """Text without a tag in it, the labels of the tags that open right before it and of those that close behind it."""

    text: str
    opened: list[str | None]
    closed: list[str | None] = field(default_factory=list)


def mark(text: str, marks: Mapping[Span, str]) -> str:
    """Return `text` with a tag around each span: its name opens, its name behind a slash closes.

    Examples
    --------
    >>> from deep.experiments.tiered._tags import mark
    >>> mark("It rained. Why?", {(0, 10): "factual"})
    '<factual>It rained.</factual> Why?'
    """
    parts, end = [], 0
    for (start, stop), name in sorted(marks.items()):
        parts += [text[end:start], f"<{name}>", text[start:stop], f"</{name}>"]
        end = stop
    return "".join([*parts, text[end:]])


def holds_tag(material: Material, names: Iterable[str]) -> bool:
    """Tell whether a source or a claim holds the beginning of a tag of one of some names, also once decoded."""
    pattern = re.compile(_TAG.format(names="|".join(map(re.escape, names))), re.IGNORECASE)
    return any(map(pattern.search, material.texts))


def read_tags(
    reply: str,
    sentences: Sequence[str],
    labels: Collection[str],
    *,
    marks: Collection[str] = (),
    code: str = "",
    shown: Material | None = None,
) -> TagReading:
    """Return the label that a reply gives to each sentence; never raises, whatever the reply holds.

    Parameters
    ----------
    reply : str
        The text with tags in it. Tags may be lost, nested or in another order, and the wording may differ.
    sentences : sequence of str
    labels : collection of str
        The names of the tags that count.
    marks : collection of str, optional
        The names of tags that may be left over from the question and say nothing.
    code : str, optional
        What the names must carry behind a hyphen.
    shown : Material, optional
        The texts that the judge saw, where the names carry no code: a tag that stands there beside the same words is
        a copy, and says nothing.

    Returns
    -------
    TagReading
        An opening tag labels the first sentence behind it, a closing tag the last sentence before it, so that a
        lost tag neither takes a label from a neighbour nor gives it one.

    Examples
    --------
    >>> from deep.experiments.tiered._tags import read_tags
    >>> reply = "<good>It rained. <bad>The wind blew very hard.</bad> <good>Dogs bark.</good>"
    >>> reading = read_tags(reply, ["It rained.", "The wind blew hard.", "Nobody came."], ["good", "bad"])
    >>> reading.labels, reading.unaligned
    (('good', 'bad', None), ('good: Dogs bark.',))
    """
    suffix = f"-{code}" if code else ""
    known = {f"{name}{suffix}".casefold(): name for name in labels} | dict.fromkeys((f"{m}{suffix}" for m in marks), "")
    texts = [plain(sentence) for sentence in sentences]
    said: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    unaligned = []
    for number, piece in enumerate(_pieces(_THOUGHT.sub(" ", reply), known, TAGS_A_SENTENCE * (len(texts) + 2))):
        for tags, last in ((piece.opened, False), (piece.closed, True)):
            for label in filter(None, tags):
                text = plain(piece.text)
                beside = f"{text[-_TOLD_BY:]}</{label}>" if last else f"<{label}>{text[:_TOLD_BY]}"
                if shown is not None and shown.holds(beside):
                    continue
                position = closest(text, texts, last=last)
                if position is None:
                    unaligned.append(f"{label}: {' '.join(piece.text.split())[:200]}")
                    continue
                # Two sentences of the same words in one piece are told apart by its ends.
                second = last and 2 * len(text) >= 3 * len(texts[position])
                said[texts[position]][2 * number + second].add(label)
    found, conflicting = _by_position(texts, said)
    return TagReading(found, tuple(dict.fromkeys(unaligned)), conflicting)


def _pieces(reply: str, known: Mapping[str, str], most_tags: int) -> list[_TextPiece]:
    """Cut a reply at its tags; an element with nothing in it is passed over."""
    names = "|".join(map(re.escape, known))
    tag = re.compile(_TAG.format(names=names) + _TAG_REST, re.IGNORECASE)
    pieces: list[_TextPiece] = []
    waiting: list[str | None] = []
    start = 0
    for match in [*islice(tag.finditer(reply), most_tags), None]:
        text = reply[start : len(reply) if match is None else match.start()]
        if text.strip():
            pieces.append(_TextPiece(text, waiting))
            waiting = []
        if match is None:
            break
        start = match.end()
        label = known.get(match[2].casefold()) or None
        if not match[1]:
            waiting.append(label)
        elif waiting:
            waiting.pop()
        elif pieces:
            pieces[-1].closed.append(label)
    return pieces


def plain(text: str) -> str:
    """Return a text in lower case and with single blanks."""
    return " ".join(text.casefold().split())


def closest(text: str, sentences: Sequence[str], *, last: bool = False) -> int | None:
    """Return the position of the sentence that a text is, or begins with; None where there is none.

    Parameters
    ----------
    text : str
        In lower case and with single blanks, as are the sentences.
    sentences : sequence of str
    last : bool, default=False
        Look for the sentence that it ends with.

    Returns
    -------
    int or None
        The first of equal ones: the sentence itself, else the longest that stands whole at the end in question, else
        the most similar one, if no other is as similar.

    Examples
    --------
    >>> from deep.experiments.tiered._tags import closest
    >>> sentences = ["it rained.", "why?", "nobody came."]
    >>> [closest(text, sentences) for text in ("why? it rained.", "nobody ever came", "no")]
    [1, 2, None]
    """
    if text in sentences:
        return sentences.index(text)
    stands = str.endswith if last else str.startswith
    whole = [i for i, sentence in enumerate(sentences) if sentence and stands(text, sentence)]
    if whole:
        return max(whole, key=lambda i: (len(sentences[i]), -i))
    words = _WORD.findall(text)
    scores = {i: _similarity(words, _WORD.findall(sentence), last) for i, sentence in enumerate(sentences)}
    best = max(scores.values(), default=0.0)
    winners = [i for i, score in scores.items() if score == best]
    if best < SIMILAR or len({sentences[i] for i in winners}) > 1:
        return None
    return winners[0]


def _similarity(words: Sequence[str], sentence: Sequence[str], last: bool) -> float:
    """Return how alike a sentence and a text, or the end of the text in question, are: from 0 to 1."""
    if not sentence or not words:
        return 0.0
    part = words[-len(sentence) :] if last else words[: len(sentence)]
    matcher = SequenceMatcher(None, b=sentence, autojunk=False)
    best = 0.0
    for other in (part, words) if len(words) <= 3 * len(sentence) else (part,):
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= SIMILAR and matcher.quick_ratio() >= SIMILAR:
            best = max(best, matcher.ratio())
    return best


def _by_position(
    texts: Sequence[str], said: Mapping[str, Mapping[int, set[str]]]
) -> tuple[tuple[str | None, ...], tuple[int, ...]]:
    """Return each sentence's label and where labels conflict; of sentences alike, the first tagged is the first."""
    found: list[str | None] = [None] * len(texts)
    conflicting = []
    for text, places in said.items():
        positions = [i for i, other in enumerate(texts) if other == text]
        labels = [places[place] for place in sorted(places)]
        if len(labels) != len(positions):
            # A sentence written out several times; or fewer tagged than there are, and no telling which.
            labels = [set().union(*labels)] * len(positions) if len(labels) > len(positions) else []
        for position, several in zip(positions, labels, strict=False):
            if len(several) == 1:
                found[position] = next(iter(several))
            else:
                conflicting.append(position)
    return tuple(found), tuple(sorted(conflicting))
