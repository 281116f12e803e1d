"""Long sources in windows: where they are cut, and how the judgments of the windows become one."""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.judges import Judge, LLMJudge, LLMReply, Program, Question, VoteQuestion
from deep.prompt_pool._locate import Span
from deep.records import ABSTAIN, Example, Judgment, Reason


class Usage(TypedDict):
    """The fields of a judgment that say what its replies were and cost."""

    raw_text: str | None
    model: str | None
    tokens: Mapping[str, int]
    cost: float | None
    seconds: float | None


def pool_judgments(judgments: Sequence[Judgment]) -> Judgment:
    """Return the majority's vote and the mean score of several judgments of one example; a single one as it is.

    The score is the share of the judge's own opinion that finds the claim consistent, after self-consistency [1]_. A
    tie abstains; a judgment without a vote counts for neither side. Tokens, costs and seconds of the answers that came
    are summed; the cost is None where one is unknown. Without a single vote the commonest reason is given.

    References
    ----------
    .. [1] Wang et al., ICLR 2023. https://arxiv.org/abs/2203.11171
    """
    if len(judgments) == 1:
        return judgments[0]
    voted = [judgment for judgment in judgments if judgment.vote != ABSTAIN]
    vote, reason = _majority(voted, judgments)
    chosen = next((judgment for judgment in voted if judgment.vote == vote), judgments[0])
    return Judgment(
        vote=vote,
        reason=reason,
        score=_mean([_soft(judgment) for judgment in voted]),
        rationale=chosen.rationale,
        evidence=chosen.evidence,
        samples=tuple(judgment.vote for judgment in judgments),
        repaired=any(judgment.repaired for judgment in voted),
        **sums([judgment.raw_text for judgment in judgments], judgments),
    )


def repaired_judgment(first: Judgment, second: Judgment | None) -> Judgment:
    """Return the judgment of a reply that could not be read and of the repair turn that followed it.

    The answer is the second one's where that has one. Both replies are kept, and tokens, dollars and seconds summed.
    """
    if second is None:
        return first
    usage = sums([first.raw_text, second.raw_text], [first, second])
    if second.vote == ABSTAIN and second.reason != "abstained":
        return replace(first, **usage)
    rationale = second.rationale or (first.raw_text or "").strip() or None
    return replace(second, repaired=True, rationale=rationale, **usage)


def usage_of(log: Sequence[LLMReply | None]) -> Usage:
    """Return the replies of a program as a JSON list, their LLMs, and the sums of tokens, dollars and seconds."""
    replies = [reply for reply in log if reply is not None]
    return sums([reply.text for reply in replies], replies)


def sums(texts: Sequence[str | None], parts: Sequence[LLMReply] | Sequence[Judgment]) -> Usage:
    tokens: Counter[str] = Counter()
    answered = [part for part in parts if getattr(part, "reason", None) != "failed"]
    for part in answered:
        tokens.update(part.tokens)
    return {
        "raw_text": json.dumps(list(texts), ensure_ascii=False) if texts else None,
        "model": ", ".join(dict.fromkeys(part.model for part in answered if part.model)) or None,
        "tokens": dict(tokens),
        "cost": _total([getattr(part, "cost", None) for part in answered]),
        "seconds": _total([getattr(part, "seconds", None) for part in answered]),
    }


def _majority(voted: Sequence[Judgment], judgments: Sequence[Judgment]) -> tuple[int, Reason | None]:
    if not voted:
        return ABSTAIN, commonest(judgment.reason for judgment in judgments)
    balance = sum(2 * judgment.vote - 1 for judgment in voted)
    return (ABSTAIN, "abstained") if balance == 0 else (int(balance > 0), None)


def _soft(judgment: Judgment) -> float:
    return float(judgment.vote) if judgment.score is None else judgment.score


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def commonest(reasons: Iterable[Reason | None]) -> Reason:
    """Return the reason that comes most often, the first by name of those that tie; None does not count."""
    return Counter(sorted(reason for reason in reasons if reason is not None)).most_common(1)[0][0]


Rule = Literal["all", "any"]

_FORM = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?")
_DECIDES = {"any": 1, "all": 0}
"""The vote of one window that is the vote on the whole source; the other one must be every window's."""


@dataclass(frozen=True)
class Chunking:
    """How a source is cut that is longer than a window.

    Parameters
    ----------
    size : int
        The most characters of a window, from 200 on; about four are a token in English.
    overlap : int, default=0
        Characters that a window repeats of the one before, at most and in whole sentences; up to half of `size`.

    Raises
    ------
    InputError
        A number is out of range.

    Examples
    --------
    >>> from deep.prompt_pool import Chunking
    >>> Chunking.parse("8000:500")
    Chunking(size=8000, overlap=500)
    >>> text = "It rained all day. " * 20
    >>> Chunking(size=200, overlap=40).spans(text)
    [(0, 189), (152, 341), (304, 379)]
    """

    size: int
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.size < 200 or not 0 <= 2 * self.overlap <= self.size:
            raise InputError(
                "`chunk` must be SIZE:OVERLAP in characters, a size of at least 200 and an overlap of half of it at "
                f"most. Got {self}."
            )

    def __str__(self) -> str:
        return f"{self.size}:{self.overlap}"

    @classmethod
    def parse(cls, text: str) -> "Chunking":
        """Return the chunking that ``SIZE`` or ``SIZE:OVERLAP`` names."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise InputError(f"`chunk` must be SIZE or SIZE:OVERLAP in characters, as in 8000:500. Got {text!r}.")
        return cls(int(found[1]), int(found[2] or 0))

    def spans(self, source: str) -> list[Span]:
        """Return (start, end) of each window of a source; the whole source where it fits into one.

        A window ends where a sentence does. A sentence that is longer than a window is cut at white space, and
        where it has none anywhere.
        """
        if len(source) <= self.size:
            return [(0, len(source))]
        pieces = [piece for span in sentence_spans(source) for piece in _cut(source, span, self.size)]
        pieces = pieces or [(0, self.size)]  # nothing but white space
        starts, windows, first = [start for start, _ in pieces], list[Span](), 0
        while True:
            last = first
            while last + 1 < len(pieces) and pieces[last + 1][1] - starts[first] <= self.size:
                last += 1
            end = pieces[last][1]
            windows.append((starts[first], end))
            if last + 1 == len(pieces):
                break
            # What is repeated must leave room for a piece that is new.
            repeated = bisect_left(starts, max(end - self.overlap, pieces[last + 1][1] - self.size))
            first = max(first + 1, min(repeated, last + 1))
        return windows


def _cut(text: str, span: Span, size: int) -> list[Span]:
    """Return the parts of a span, each no longer than `size`, cut at white space where there is any."""
    start, end = span
    parts = []
    while end - start > size:
        blank = max(text.rfind(sign, start + 1, start + size + 1) for sign in " \n\t")
        stop = start + size if blank < 0 else blank
        parts.append((start, stop))
        start = stop if blank < 0 else stop + 1
    return [*parts, (start, end)]


def window_spans(chunk: Chunking | None, example: Example) -> list[Span]:
    """Return where the windows of an example's source stand; a single one without a chunking."""
    return [(0, len(example.source))] if chunk is None else chunk.spans(example.source)


def chunk_details(chunk: Chunking | None) -> dict[str, str]:
    """Return the entry of a chunking in a judge's details; nothing without one."""
    return {} if chunk is None else {"chunk": str(chunk)}


def over_windows(
    ask: Callable[[Example], Program[Judgment]], example: Example, spans: Sequence[Span], rule: Rule
) -> Program[Judgment]:
    """Judge an example window by window, all at once, and combine the judgments; a single window is the example.

    Parameters
    ----------
    ask : callable
        Returns the program of an example whose source is a window.
    example : Example
    spans : sequence of (int, int)
        Where the windows stand in the source.
    rule : {'any', 'all'}

    Returns
    -------
    Judgment
        See :func:`combine_windows`.
    """
    if len(spans) == 1:
        return (yield from ask(example))
    programs = [ask(window) for window in _windows(example, spans)]
    judgments = yield from _side_by_side(programs)
    return combine_windows(judgments, spans, rule)


def _side_by_side(programs: Sequence[Program[Judgment]]) -> Program[list[Judgment]]:
    """Run programs together, each round of questions at once, and name the window in each question."""
    values: dict[int, Judgment] = {}
    replies: dict[int, Sequence[LLMReply | None] | None] = dict.fromkeys(range(len(programs)))
    while len(values) < len(programs):
        asked: dict[int, Sequence[Question]] = {}
        for number, reply in replies.items():
            try:
                asked[number] = next(programs[number]) if reply is None else programs[number].send(reply)
            except StopIteration as end:
                values[number] = end.value
        found = (
            list((yield [_of_window(q, n + 1) for n, questions in asked.items() for q in questions])) if asked else []
        )
        replies = {n: [found.pop(0) for _ in questions] for n, questions in asked.items()}
    return [values[number] for number in range(len(programs))]


def _of_window(question: Question, number: int) -> Question:
    return replace(question, part=f"window {number}") if isinstance(question, VoteQuestion) else question


def combine_windows(judgments: Sequence[Judgment], spans: Sequence[Span], rule: Rule) -> Judgment:
    """Return the judgment of a source by those of its windows.

    With the rule ``any``, for judges that look for support, the vote is 1 if that of any window is, and 0 only if all
    windows have voted 0. With ``all``, for judges that look for contradiction, the vote is 0 if that of any window is,
    and 1 only if all windows have voted 1. Else a window without a vote leaves the source without one, for the
    commonest reason of the windows.

    Parameters
    ----------
    judgments : sequence of Judgment
        One a window.
    spans : sequence of (int, int)
        Where the windows stand in the source; the rationale names them.
    rule : {'any', 'all'}

    Returns
    -------
    Judgment
        Its score is the highest of the windows' (``any``) or the lowest (``all``); rationale and evidence come from
        the windows that decided, tokens, dollars and seconds from all.

    Examples
    --------
    >>> from deep.prompt_pool import combine_windows
    >>> from deep.records import Judgment
    >>> found, absent, lost = Judgment(vote=1), Judgment(vote=0), Judgment(vote=-1, reason="failed")
    >>> spans = [(0, 900), (800, 1700)]
    >>> [combine_windows(pair, spans, "any").vote for pair in ([found, lost], [absent, absent], [absent, lost])]
    [1, 0, -1]
    >>> [combine_windows(pair, spans, "all").vote for pair in ([found, lost], [found, found], [absent, lost])]
    [-1, 1, 0]
    """
    votes = [judgment.vote for judgment in judgments]
    decisive = _DECIDES[rule]
    vote = decisive if decisive in votes else ABSTAIN if ABSTAIN in votes else 1 - decisive
    chosen = [(span, judgment) for span, judgment in zip(spans, judgments, strict=True) if judgment.vote == vote]
    scores = [judgment.score for judgment in judgments if judgment.score is not None]
    score = None if vote == ABSTAIN or not scores else max(scores) if rule == "any" else min(scores)
    said = [f"Characters {a} to {b}: {j.rationale}" for (a, b), j in chosen if j.rationale]
    return Judgment(
        vote=vote,
        reason=commonest(judgment.reason for judgment in judgments) if vote == ABSTAIN else None,
        score=score,
        rationale="\n".join(said) or None,
        evidence=tuple(dict.fromkeys(_moved(e, start) for (start, _), judgment in chosen for e in judgment.evidence)),
        repaired=any(judgment.repaired for _, judgment in chosen),
        **sums([judgment.raw_text for judgment in judgments], judgments),
    )


def _moved(entry: str, start: int) -> str:
    """Return an entry of evidence with its places counted from the beginning of the whole source.

    Excerpts in plain words have no places of their own; a checked claim in JSON has one for each of its excerpts.
    """
    try:
        record = json.loads(entry) if entry.startswith("{") else None
        found = record.get("evidence") if isinstance(record, dict) else None
        if not isinstance(found, list):
            return entry
        for excerpt in found:
            if isinstance(excerpt, dict) and excerpt.get("span"):
                excerpt["span"] = [start + position for position in excerpt["span"]]
    except (ValueError, TypeError, RecursionError):  # JSON of a document, which the judge quotes
        return entry
    return json.dumps(record, ensure_ascii=False)


@dataclass(frozen=True)
class ChunkedJudge(LLMJudge):
    """A staged judge that takes a long source window by window, with the rule ``any``; in its own column.

    Parameters
    ----------
    judge : Judge
    chunk : Chunking
    """

    judge: Judge
    chunk: Chunking

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def version(self) -> str:
        """The judge's version; a source that fits into a window is judged as without."""
        return self.judge.version

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        return {**self.judge.details, **chunk_details(self.chunk)}

    def most_calls(self, example: Example, /) -> int | None:
        """Return the most calls of all windows; None where one has no bound."""
        if not isinstance(self.judge, LLMJudge):
            return None
        bounds = [self.judge.most_calls(window) for window in _windows(example, self.chunk.spans(example.source))]
        known = [bound for bound in bounds if bound is not None]
        return sum(known) if len(known) == len(bounds) else None

    def program(self, example: Example, /) -> Program[Judgment]:
        """Return the programs of all windows as one."""
        return over_windows(self.judge.program, example, self.chunk.spans(example.source), "any")


def _windows(example: Example, spans: Sequence[Span]) -> list[Example]:
    return [replace(example, source=example.source[start:end]) for start, end in spans]
