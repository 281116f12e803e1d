"""Find a judge's final answer in its reply, and nothing that merely looks like one.

Only what closes the reply is an answer: labels in the reasoning, in a quotation or in an echo of the task are
passed over, because they are not last, not delimited, or do not carry the code that the prompt asked for.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deep.judge import LLMReply
from deep.prompt_pool._material import CODE_LENGTH, Material
from deep.prompt_pool._soft import Logprobs, soft_vote
from deep.prompt_pool._values import LONGEST_VALUE, normalise_label, read_label, read_score
from deep.records import Judgment, Reason

Kind = Literal["score", "verdict"]
Output = Literal["json", "text", "xml"]

CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
WITHHELD = frozenset({"blocklist", "content_filter", "prohibited_content", "recitation", "refusal", "safety"})

# More line-initial braces than this is no answer, and bounds the work that a hostile reply can cause.
MOST_OBJECTS = 50

_OBJECT = re.compile(r"(?:^|</think>)[ \t]*(?:```(?:json)?[ \t]*)?(\{)", re.MULTILINE | re.IGNORECASE)
_BETWEEN = re.compile(r"(?:[\s`*]|</(?:answer|output|response|result)>)*", re.IGNORECASE)
_QUOTATION = re.compile(r'"([^"\n]{8,400})"|\u201c([^\u201d\n]{8,400})\u201d')
_DECLINES = re.compile(
    r"[^.\n]{0,100}?\b(?:i|we)[ ']"
    r"(?:can't|cannot|can not|won't|will not|(?:am|are|m|re) unable to|(?:am|are|m|re) not able to) (?:\w+ )?"
    r"(?:answer|assist|comply|continue|discuss|engage|fulfil|help|process|provide|respond)",
    re.IGNORECASE,
)


def why_unusable(reply: LLMReply | None) -> Reason | None:
    """Return the reason why a reply cannot be read, whatever it was to answer; None where it can.

    Returns
    -------
    {'failed', 'refused', 'truncated', None}
        There is no reply; the endpoint or the model withheld it; it was cut off.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.prompt_pool import why_unusable
    >>> why_unusable(None), why_unusable(SimpleNamespace(text="The", finish_reason="length", refusal=None))
    ('failed', 'truncated')
    """
    if reply is None:
        return "failed"
    finish = str(reply.finish_reason or "").casefold()
    if reply.refusal or finish in WITHHELD:
        return "refused"
    return "truncated" if finish in CUT_OFF else None


@dataclass(frozen=True, slots=True)
class _FinalAnswer:
    """One readable answer: where it stands, its words, what they mean, and what an object holds beside it."""

    start: int
    end: int
    said: str
    reading: float
    reasoning: str | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class AnswerForm:
    """How a prompt asks for its answer, and so how a reply is read.

    Parameters
    ----------
    kind : {'score', 'verdict'}
    output : {'json', 'text', 'xml'}
    labels : mapping of str to {1, 0, -1}
        What each verdict stands for: consistent, inconsistent, abstained. Empty for a score.
    scale : (float, float) or None
        The lowest and the highest score. None for a verdict.
    threshold : float
        The scaled score from which the vote is 1.
    parts : tuple of str
        What is listed before the answer.
    """

    kind: Kind
    output: Output
    labels: Mapping[str, int]
    scale: tuple[float, float] | None
    threshold: float
    parts: tuple[str, ...] = ()

    def marker(self, tag: str) -> str:
        """Return the marker that announces the answer: a line's beginning, an element's name, or a key."""
        if self.output == "json":
            return self.kind
        name = f"{self.kind}-{tag}" if tag else self.kind
        return f"{self.kind.upper()}{name[len(self.kind) :]}:" if self.output == "text" else name

    def judge(
        self,
        text: str | None,
        *,
        finish_reason: str | None,
        refusal: str | None,
        material: Material | None,
        logprobs: Logprobs | None,
    ) -> Judgment:
        """Read one reply; never raises, whatever the reply holds."""
        finish = str(finish_reason or "").casefold()
        reply = text if isinstance(text, str) else ""
        if refusal or finish in WITHHELD:
            return Judgment(vote=-1, reason="refused", raw_text=reply or refusal)
        cut = finish in CUT_OFF
        answers = self._final_answers(reply, cut=cut, material=material)
        if len({answer.reading for answer in answers}) == 1:
            return self._judgment(answers, reply, logprobs)
        return Judgment(vote=-1, reason="unparsable" if answers else why_none(reply, cut), raw_text=reply)

    def _final_answers(self, text: str, *, cut: bool, material: Material | None) -> list[_FinalAnswer]:
        """Return the answers that close the reply, last first; several where it repeats or contradicts itself."""
        final: list[_FinalAnswer] = []
        rest = len(text)
        for answer in reversed(list(self._answers(text, cut, material))):
            if not _BETWEEN.fullmatch(text, answer.end, rest):
                break
            final.append(answer)
            rest = answer.start
        return final

    def _answers(self, text: str, cut: bool, material: Material | None) -> Iterator[_FinalAnswer]:
        tag = None if material is None else material.tag(self.kind)
        if self.output == "json":
            return self._in_objects(text, material)
        return self._in_elements(text, tag) if self.output == "xml" else self._in_lines(text, tag, cut, material)

    def _in_lines(self, text: str, tag: str | None, cut: bool, material: Material | None) -> Iterator[_FinalAnswer]:
        marks = list(_line_marker(self.kind, tag).finditer(text))
        if not (marks or tag or cut or (material and material.equals(text))):
            yield from self._read(text, 0, len(text))
        ends = [*[mark.start() for mark in marks[1:]], len(text)]
        for mark, end in zip(marks, ends, strict=False):
            value = text[mark.end() : end]
            if not (cut and end == len(text) and self._may_go_on(value)):
                yield from self._read(value, mark.start(), end)

    def _may_go_on(self, value: str) -> bool:
        """Tell whether `value` could be the beginning of another answer that the length limit cut off."""
        if not value[-1:].isalnum() or len(value) > LONGEST_VALUE:
            return False
        said = normalise_label(value)
        longer = (label for label in map(normalise_label, self.labels) if label != said)
        return self.kind == "score" or any(label.startswith(said) for label in longer)

    def _in_elements(self, text: str, tag: str | None) -> Iterator[_FinalAnswer]:
        for match in _element(self.kind, tag).finditer(text):
            yield from self._read(match["value"], match.start(), match.end())

    def _in_objects(self, text: str, material: Material | None) -> Iterator[_FinalAnswer]:
        end = 0
        for match in list(_OBJECT.finditer(text))[-MOST_OBJECTS:]:
            start = match.start(1)
            found = None if start < end else _decode(text, start)
            if found is None:
                continue
            fields, end = found
            if not (material and material.holds(text[start:end])):
                reasoning = fields.get("reasoning")
                said = reasoning if isinstance(reasoning, str) else None
                parts = tuple(_entries((part, fields.get(part)) for part in self.parts))
                yield from self._read(fields.get(self.kind), start, end, said, parts)

    def _read(
        self, value: Any, start: int, end: int, reasoning: str | None = None, parts: tuple[str, ...] = ()
    ) -> Iterator[_FinalAnswer]:
        """Yield an answer where `value` is a label, or a number on the scale."""
        said = json.dumps(value) if isinstance(value, bool | int | float) else value
        if not isinstance(said, str):
            return
        reading = read_score(said, *self.scale) if self.scale else read_label(said, self.labels)
        if reading is not None:
            yield _FinalAnswer(start, end, said, reading, reasoning, parts)

    def _judgment(self, answers: Sequence[_FinalAnswer], text: str, logprobs: Logprobs | None) -> Judgment:
        """Return the judgment of answers that agree, last first."""
        last, first = answers[0], answers[-1]
        before = text[: first.start]
        enclosed = before.partition("<reasoning>")[2].rpartition("</reasoning>")[0]
        rationale = (last.reasoning or enclosed or before).strip()
        vote = int(last.reading >= self.threshold) if self.scale else int(last.reading)
        score = last.reading if self.scale else soft_vote(last.said, logprobs or (), self.labels)
        return Judgment(
            vote=vote,
            reason="abstained" if vote == -1 else None,
            score=score,
            raw_text=text,
            rationale=rationale or None,
            evidence=self._evidence(last, before, rationale),
        )

    def _evidence(self, last: _FinalAnswer, before: str, rationale: str) -> tuple[str, ...]:
        """Return the evidence that the judge lists where it was asked to, or else the passages that it quotes."""
        listed = tuple(_entries((part, _lines_of(part, before)) for part in self.parts))
        found = last.parts if self.output == "json" else listed
        return found or tuple(dict.fromkeys(straight or curly for straight, curly in _QUOTATION.findall(rationale)))


def _entries(lists: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield ``<name>: <entry>`` for each entry of some lists that has text; whatever else came in place is left out."""
    for name, entries in lists:
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, str) and entry.strip():
                yield f"{name}: {entry.strip()}"


def _lines_of(part: str, text: str) -> list[str]:
    """Return the lines of the last element of a name, without the signs that make a list of them."""
    inside = text.rpartition(f"</{part}>")[0].rpartition(f"<{part}>")[2]
    found = f"<{part}>" in text and f"</{part}>" in text
    return [line.strip().lstrip("-*\u2022").strip() for line in inside.splitlines()] if found else []


def why_none(text: str, cut: bool) -> Reason:
    """Return why a reply without an answer has none; `cut` where it reached its length limit."""
    if cut:
        return "truncated"
    return "refused" if _DECLINES.match(text[:200].replace("\u2019", "'")) else "unparsable"


def _suffix(tag: str | None) -> str:
    """Return the pattern of the code behind a marker: any where the inputs are unknown, else exactly theirs."""
    if tag is None:
        return rf"(?:-[0-9a-f]{{{CODE_LENGTH}}})?"
    return f"-{tag}" if tag else ""


def _line_marker(word: str, tag: str | None) -> re.Pattern[str]:
    pattern = rf"(?:^|</think>)[ \t*_#`-]*(?:final[ \t]+)?{word}{_suffix(tag)}[*_` \t]{{0,8}}[:\uff1a]"
    return re.compile(pattern, re.MULTILINE | re.IGNORECASE | re.ASCII)


def _element(word: str, tag: str | None) -> re.Pattern[str]:
    pattern = rf"<(?P<name>{word}{_suffix(tag)})>(?P<value>[^<]{{0,300}})</(?P=name)>"
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def _decode(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Return the JSON object at `start`, its keys in lower case, and where it ends."""
    try:
        fields, end = json.JSONDecoder(object_pairs_hook=_unrepeated).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return fields, end


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dict; an object that says one key twice says nothing."""
    fields = {key.casefold(): value for key, value in pairs}
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields
