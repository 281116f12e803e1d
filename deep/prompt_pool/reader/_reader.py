"""Read the answers of a reply, by docs/replies.md, and make a judgment of them.

Only what closes or opens the reply is an answer: labels in the reasoning, in a quotation or in an echo of the task are
passed over, because they do not stand there, are not delimited, or do not carry the code that the prompt asked for. An
answer in another form than the prompt asked for counts only where nothing else in the reply disagrees with it, and
where it could not have been copied from the document.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from deep.judge import LLMReply
from deep.prompt_pool._material import Material
from deep.prompt_pool._soft import Logprobs, soft_vote
from deep.prompt_pool.reader._places import (
    Kind,
    Place,
    after_thoughts,
    boxes,
    elements,
    ends_thoughts,
    entries,
    line_marks,
    objects,
    tables,
)
from deep.prompt_pool.reader._sayings import STOP_TOKEN, LabelReading, explains, rated, read_value, said_in, stated
from deep.prompt_pool.reader._words import LONGEST_VALUE, normalise_label, read_label
from deep.records import Judgment, Reason

Output = Literal["json", "text", "xml"]

CONTEXT = 40
"""Characters around an answer that stands by itself, by which a copy out of the document is known."""

SHORT = 12
"""Characters of a statement that may stand in any text by chance."""

_BETWEEN = re.compile(rf"(?:[\s`*\]}};,]|~{{3,}}|-{{3,}}|{STOP_TOKEN.pattern})*", re.IGNORECASE)
_NEXT_LINE = re.compile(r"[ \t`*.]*\n[\s`*#>-]*")


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """One readable answer: where it stands, its words, what they mean, and what an object holds beside it.

    `sure` is whether it has the form that the prompt asked for.
    """

    start: int
    end: int
    reading: LabelReading
    sure: bool
    place: Place | None = None


@dataclass(frozen=True)
class ReplyReader:
    """One reply and how its answer was asked for.

    Parameters
    ----------
    text : str
    kind : {'score', 'verdict'}
    output : {'json', 'text', 'xml'}
    labels : mapping of str to {1, 0, -1}
    scale : (float, float) or None
    cut : bool
        Whether the reply reached its length limit.
    material : Material or None
        What was asked about, where it is known.
    """

    text: str
    kind: Kind
    output: Output
    labels: Mapping[str, float]
    scale: tuple[float, float] | None
    cut: bool
    material: Material | None
    first: bool = False

    @cached_property
    def _begin(self) -> int | None:
        begin = after_thoughts(self.text)
        if begin == 0 or self.material is None:
            return begin
        # Where a text holds such an end, the reply's may be a copy, and what stands behind it too.
        return 0 if any(map(ends_thoughts, self.material.texts)) else begin

    @cached_property
    def _tag(self) -> str | None:
        """The code that an answer must carry; nothing where it needs none, None where that is not known."""
        return None if self.material is None or self.output == "json" else self.material.tag(self.kind)

    def final_answers(self) -> list[FinalAnswer]:
        """Return the answers that close the reply, last first; several where it repeats or contradicts itself.

        Where the last one has another form than was asked for, all that can be read in the reply come with it.
        """
        known = self._answers()
        final: list[FinalAnswer] = []
        rest = len(self.text)
        for answer in reversed(known):
            closes = _BETWEEN.fullmatch(self.text, answer.end, rest)
            if not closes and not (answer is known[-1] and self._explained(answer)):
                break
            final.append(answer)
            rest = answer.start
        if final and final[0].sure:
            return [answer for answer in final if answer.sure]
        if final:
            return [*final, *(answer for answer in known if answer not in final)]
        return self._stated(known)

    def _stated(self, known: Sequence[FinalAnswer]) -> list[FinalAnswer]:
        """Return what the reply states in sentences at its beginning or its end, where no code was asked for."""
        begin = self._begin
        if begin is None or self._tag or any(mark.sure and mark.end >= begin for mark in self._marks):
            return []
        elements = [answer for answer in known if answer.place and self._has_a_line(answer.place)]
        if elements:
            return elements if len(elements) == len(known) else []
        if known:
            return []
        body = self.text[begin:]
        if self.scale and not self.labels:
            one = rated(body, self.scale, first=self.first)
            found = [one] if one else []
        else:
            found = stated(body, self.labels)
        asked = re.compile(r"verdict[*_` \t]*[:\uff1a]", re.IGNORECASE)
        if self.kind == "verdict" and asked.search(body) and not all(asked.search(body, *one[1:]) for one in found):
            return []  # what was asked for stands there, in a form that cannot be read
        return [
            FinalAnswer(begin + one.start, begin + one.end, LabelReading(one.value, said, said), False)
            for one in found
            if (said := body[one.start : one.end])
            and not (self.cut and one.end == len(body))
            and not self._repeats(said, body[one.start : one.end + CONTEXT])
        ]

    def _repeats(self, said: str, around: str) -> bool:
        """Tell whether a statement could end in a copy; one of a word or two only with what stands around it."""
        if self.material is None:
            return False
        said, around = said.strip(), STOP_TOKEN.sub(" ", around).strip()
        if len(said) >= SHORT:
            return self.material.echoes(said, context=said[-2 * SHORT :])
        whole = said == around == self.text.strip()[: len(said)]
        return self.material.equals(said) if whole else self.material.echoes(said, context=around)

    @cached_property
    def _marks(self) -> list[Place]:
        return line_marks(self.text, self.kind, self._tag)

    def _has_a_line(self, place: Place) -> bool:
        """Tell whether an element stands on lines of its own, so that what follows may be anything."""
        before = self.text[max(0, place.start - CONTEXT) : place.start].rstrip(" \t")
        behind = self.text[place.end : place.end + CONTEXT].lstrip(" \t")
        return place.form == "xml" and before[-1:] in ("", "\n") and behind[:1] in ("", "\n")

    def _explained(self, answer: FinalAnswer) -> bool:
        """Tell whether what stands in the lines behind an element or an object is its reason."""
        behind = _NEXT_LINE.match(self.text, answer.end)
        if behind is None or self.cut or answer.place is None or answer.place.behind_marker:
            return False
        remark = STOP_TOKEN.sub(" ", self.text[behind.end() :]).strip()
        return explains(remark, int(answer.reading.value), self._others(answer.reading.value))

    def _others(self, value: float) -> list[str]:
        return [label for label, polarity in self.labels.items() if polarity != value]

    @property
    def known(self) -> list[FinalAnswer]:
        """Whatever can be read as an answer."""
        return self._answers()

    def _answers(self) -> list[FinalAnswer]:
        """Return whatever can be read as an answer, in the order in which it stands."""
        begin = self._begin
        if begin is None:
            return []
        marks = [mark for mark in self._marks if mark.end >= begin]
        places = [place for place in self._structures() if place.end > begin]
        found = [*self._in_lines(marks), *(answer for place in places for answer in self._read(place))]
        return sorted(found, key=lambda answer: (answer.start, answer.end))

    def _in_lines(self, marks: Sequence[Place]) -> Iterator[FinalAnswer]:
        """Yield the answers behind markers; another marker than the one asked for, with no answer, is none."""
        readable: dict[int, list[FinalAnswer]] = {}
        for mark, end in zip(marks, self._ends(marks), strict=True):
            if not mark.sure:
                readable[mark.end] = [*self._read(self._behind(mark, end))]
        kept = [mark for mark in marks if readable.get(mark.end, True)]
        for mark, end in zip(kept, self._ends(kept), strict=True):
            yield from self._read(self._behind(mark, end)) if mark.sure else readable[mark.end]

    def _ends(self, marks: Sequence[Place]) -> list[int]:
        return [*[mark.start for mark in marks[1:]], len(self.text)][: len(marks)]

    def _behind(self, mark: Place, end: int) -> Place:
        return mark._replace(value=self.text[mark.end : end], value_start=mark.end, end=end)

    def _structures(self) -> Iterator[Place]:
        yield from elements(self.text, self.kind, self._tag)
        if not self._tag:
            yield from boxes(self.text)
            yield from objects(self.text, self.kind)
            yield from tables(self.text, self.kind)

    def _read(self, place: Place) -> Iterator[FinalAnswer]:
        """Yield an answer where a place holds a label, or a number on the scale, and nothing that takes it back."""
        last = place.end == len(self.text)
        if place.behind_marker and self.cut and last and self._may_go_on(place.value):
            return
        found = self._value(place.value)
        alone = place.behind_marker and (place.strict or self.cut or not last)
        if found is None or (alone and found.remark):
            return
        sure = place.sure and place.form == self.output
        if not self._is_copied(place, found, sure=sure):
            yield FinalAnswer(place.start, place.end, found, sure, place)

    def _may_go_on(self, value: str) -> bool:
        """Tell whether `value` could begin an answer with another meaning that the length limit cut off."""
        if not value[-1:].isalnum() or len(value) > LONGEST_VALUE:
            return False
        said = normalise_label(value)
        read = read_label(value, self.labels)
        others = (normalise_label(label) for label, polarity in self.labels.items() if polarity != read)
        return self.kind == "score" or any(label != said and label.startswith(said) for label in others)

    def _is_copied(self, place: Place, found: LabelReading, *, sure: bool) -> bool:
        """Tell whether an answer could have been copied from the material."""
        if self.material is None:
            return False
        whole = self.text[place.start : place.end]
        if place.fields is not None and self.material.repeats(place.fields):
            return True
        if sure and not self.material.bare:
            return place.form == "json" and self.material.holds(whole)
        inner = self.text[place.value_start : place.end]
        if place.form == "table":
            return self.material.echoes(inner, context=whole)
        if place.form == "json" and place.fields is None and self.material.echoes(inner, context=inner):
            return True
        said = self.text[place.start : place.value_start] + found.core if place.behind_marker else whole
        return self.material.echoes(said, context=said)

    def _value(self, value: Any) -> LabelReading | None:
        said = json.dumps(value) if isinstance(value, bool | int | float) else value
        return read_value(said, self.labels, self.scale) if isinstance(said, str) else None


CUT_OFF = frozenset({"length", "max_tokens", "model_length"})
WITHHELD = frozenset({"blocklist", "content_filter", "prohibited_content", "recitation", "refusal", "safety"})

LONGEST_SIDE = 30_000
"""Characters at either end of a longer reply that are read; what it holds between is no place for an answer."""

_QUOTATION = re.compile(r'"([^"\n]{8,400})"|\u201c([^\u201d\n]{8,400})\u201d')
_CHOSEN = re.compile(
    r'\s*\{\s*"(?P<kind>verdict|score)(?:-(?P<tag>[0-9a-f]{8}))?"\s*:\s*"(?P<label>[^"\\\n]{1,100})"\s*\}\s*'
)
_UNABLE = r"(?:can't|can ?not|won't|will not|(?:am|are|m|re) (?:unable|not able) to)"
_DECLINES = re.compile(
    r"[^.\n]{0,100}?\b(?:i|we)(?: (?:must|have to|need to|will have to))?[ ']"
    rf"(?:{_UNABLE} (?:\w+ )?(?:answer|assist|comply|continue|discuss|do (?:that|this)|engage|fulfill?|generate|help"
    r"|participate|process|produce|provide|respond|review)"
    r"|(?:politely |respectfully )?(?:decline|refuse)\b|(?:am|are|m|re) not (?:comfortable|allowed|permitted))"
    rf"|\W*(?:(?:i'm|i am|we're|we are) )?(?:very )?(?:sorry|my apologies|i apologi[sz]e)\b[^\n]{{0,80}}?"
    rf"(?:{_UNABLE}\W*$|against|polic(?:y|ies)\b|guidelines)",
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
    told : tuple of str
        The labels that the judge is told to choose from; the others are spellings that are understood too.
    """

    kind: Kind
    output: Output
    labels: Mapping[str, int]
    scale: tuple[float, float] | None
    threshold: float
    parts: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    answer_first: bool = False
    scale_words: Mapping[str, float] = field(default_factory=dict)
    listed: bool = False

    def marker(self, tag: str) -> str:
        """Return the marker that announces the answer: a line's beginning, an element's name, or a key."""
        if self.output == "json":
            return self.kind
        name = self.key(tag)
        return f"{self.kind.upper()}{name[len(self.kind) :]}:" if self.output == "text" else name

    def key(self, tag: str) -> str:
        """Return the key of the answer in an object that holds nothing else."""
        return f"{self.kind}-{tag}" if tag and self.output != "json" else self.kind

    def line(self, tag: str, label: str) -> str:
        """Return the line that gives an answer."""
        marker = self.marker(tag)
        if self.output == "json":
            return json.dumps({marker: label}, ensure_ascii=False)
        return f"<{marker}>{label}</{marker}>" if self.output == "xml" else f"{marker} {label}"

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
        chosen = self._chosen(reply)
        if chosen is not None:
            plain = self.judge(chosen, finish_reason=None, refusal=None, material=material, logprobs=logprobs)
            return replace(plain, raw_text=reply)
        if self.listed and not cut:
            return self._listed(reply, material)
        begin = after_thoughts(reply) or 0
        shown = reply
        if len(reply) - begin > 2 * LONGEST_SIDE:
            shown = f"{reply[begin : begin + LONGEST_SIDE]}\n{reply[-LONGEST_SIDE:]}"
        reader = ReplyReader(shown, self.kind, self.output, self._words, self.scale, cut, material, self.answer_first)
        answers = reader.final_answers()
        if len({answer.reading.value for answer in answers}) == 1:
            return replace(self._judgment(answers, shown, logprobs), raw_text=reply)
        return Judgment(vote=-1, reason="unparsable" if answers else why_none(reply, cut), raw_text=reply)

    def verdicts_in(self, text: str) -> set[float]:
        """Return the values of all that can be read in a reply as an answer or a statement."""
        reader = ReplyReader(text[-LONGEST_SIDE:], self.kind, self.output, self._words, self.scale, False, None)
        return {*(answer.reading.value for answer in reader.known), *said_in(text, self._words)}

    def entries(self, text: str) -> list[int] | None:
        """Return the polarity of each entry of a list, under the last key that has a label in all; None without one."""
        listed = entries(text)
        for key in reversed(listed[0] if listed else {}):
            said = [read_label(str(entry.get(key)), self.labels) for entry in listed]
            if None not in said:
                return [int(polarity) for polarity in said if polarity is not None]
        return None

    def _listed(self, text: str, material: Material | None) -> Judgment:
        """Return the judgment of a reply that lists an answer for each part: 1 where all are, else 0."""
        found = None if material and any(map(material.repeats, entries(text))) else self.entries(text)
        if found is None:
            return Judgment(vote=-1, reason=why_none(text, cut=False), raw_text=text)
        vote = 0 if 0 in found else min(found)
        return Judgment(vote=vote, reason="abstained" if vote == -1 else None, raw_text=text)

    @property
    def _words(self) -> Mapping[str, float]:
        """The labels, or the words of the scale, each with what it stands for: a polarity, or a score from 0 to 1."""
        if self.scale is None or not self.scale_words:
            return self.labels
        low, high = self.scale
        return {word: (number - low) / (high - low) for word, number in self.scale_words.items()}

    def _chosen(self, reply: str) -> str | None:
        """Return the line for which an object with the answer and nothing else stands, as a JSON schema makes it."""
        found = _CHOSEN.fullmatch(reply, after_thoughts(reply) or 0) if self.output != "json" else None
        if found is None or found["kind"] != self.kind or found["label"] not in self.labels:
            return None
        return self.line(found["tag"] or "", found["label"])

    def _judgment(self, answers: Sequence[FinalAnswer], text: str, logprobs: Logprobs | None) -> Judgment:
        """Return the judgment of answers that agree, last first."""
        last, first = answers[0], min(answers, key=lambda answer: answer.start)
        before = text[: first.start]
        fields = (last.place.fields if last.place else None) or {}
        said = fields.get("reasoning")
        enclosed = before.partition("<reasoning>")[2].rpartition("</reasoning>")[0]
        rationale = ((said if isinstance(said, str) else "") or enclosed or before or last.reading.remark).strip()
        reading = last.reading.value
        vote = int(reading >= self.threshold) if self.scale else int(reading)
        score = reading if self.scale else soft_vote(last.reading.said, logprobs or (), self.labels)
        return Judgment(
            vote=vote,
            reason="abstained" if vote == -1 else None,
            score=score,
            raw_text=text,
            rationale=rationale or None,
            evidence=self._evidence(fields, before, rationale),
        )

    def _evidence(self, fields: Mapping[str, Any], before: str, rationale: str) -> tuple[str, ...]:
        """Return the evidence that the judge lists where it was asked to, or else the passages that it quotes."""
        lists = [(part, fields.get(part) if fields else _lines_of(part, before)) for part in self.parts]
        quoted = tuple(dict.fromkeys(straight or curly for straight, curly in _QUOTATION.findall(rationale)))
        return tuple(_entries(lists)) or quoted


def _entries(lists: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield ``<name>: <entry>`` for each entry of some lists that has text; whatever else came in place is left out."""
    for name, listed in lists:
        for entry in listed if isinstance(listed, list) else ():
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
    said = text[after_thoughts(text) or 0 :].strip()
    return "refused" if _DECLINES.match(said[:200].replace("\u2019", "'")) else "unparsable"
