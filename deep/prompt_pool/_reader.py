"""Read the answers that close a reply, in the form that was asked for or in another that cannot be mistaken."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from deep.prompt_pool._forms import (
    Kind,
    Place,
    after_thoughts,
    boxes,
    elements,
    ends_thoughts,
    line_marks,
    objects,
    tables,
)
from deep.prompt_pool._material import Material
from deep.prompt_pool._reading import STOP_TOKEN, LabelReading, read_value
from deep.prompt_pool._remark import explains
from deep.prompt_pool._values import LONGEST_VALUE, normalise_label, read_label
from deep.prompt_pool.reader._stated import rated, stated

Output = Literal["json", "text", "xml"]

MOST_LINES = 100
CONTEXT = 40
"""Characters around an answer that stands by itself, by which a copy out of the document is known."""

_BETWEEN = re.compile(rf"(?:[\s`*\]}};,]|~{{3,}}|-{{3,}}|{STOP_TOKEN.pattern})*", re.IGNORECASE)
_ENDING = re.compile(rf"(?:[\s`*]|~{{3,}}|-{{3,}}|{STOP_TOKEN.pattern})+\Z", re.IGNORECASE)
_NEXT_LINE = re.compile(r"[ \t`*.]*\n[\s`*#>-]*")
_SENTENCE_END = re.compile(r"(?:[.!:;)\"'`*_\u201d>\u3002\uff01\uff1a]|\n[ \t]*\n)\s*\Z")
_ASKS = ("?", "\uff1f")


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
    labels: Mapping[str, int]
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
        return [*known, *stated] if (stated := self._stated(known)) else []

    def _stated(self, known: Sequence[FinalAnswer]) -> list[FinalAnswer]:
        """Return what the reply states in sentences, at its beginning or its end, where nothing was asked for by a code."""
        begin = self._begin
        if begin is None or self._tag or any(mark.sure and mark.end >= begin for mark in self._marks):
            return []
        elements = [answer for answer in known if answer.place and self._has_a_line(answer.place)]
        if elements:
            return elements if len(elements) == len(known) else []
        if known:
            return []
        body = self.text[begin:]
        if self.kind == "verdict" and re.search(r"verdict[*_` \t]*[:\uff1a]", body, re.IGNORECASE):
            return []  # what was asked for stands there, in a form that cannot be read
        if self.scale and not self.labels:
            one = rated(body, self.scale, first=self.first)
            found = [one] if one else []
        else:
            found = stated(body, self.labels, first=self.first)
        return [
            FinalAnswer(begin + one.start, begin + one.end, LabelReading(one.value, said, said), False)
            for one in found
            if (said := body[one.start : one.end])
            and not (self.cut and one.end == len(body))
            and not (self.material and self.material.echoes(said, context=body[one.start : one.end + CONTEXT]))
        ]

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

    def _answers(self) -> list[FinalAnswer]:
        """Return whatever can be read as an answer, in the order in which it stands."""
        begin = self._begin
        if begin is None:
            return []
        marks = [mark for mark in self._marks if mark.end >= begin]
        places = [place for place in self._structures() if place.end > begin]
        found = [*self._in_lines(marks), *(answer for place in places for answer in self._read(place))]
        said = [self._value(self.text[mark.end : end]) for mark, end in zip(marks, self._ends(marks), strict=True)]
        asked = any(mark.sure or value for mark, value in zip(marks, said, strict=True))
        # An answer that is marked or enclosed and was not taken above may have been copied.
        if not (found or asked or places or self._tag or self.cut):
            found = [*self._by_itself(begin)]
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

    def _by_itself(self, begin: int) -> Iterator[FinalAnswer]:
        """Yield the answer of a reply that is a label, begins with one, or ends with a line that is one."""
        body = self.text[begin:]
        whole = self._value(body)
        if whole is None:
            ending = _ENDING.search(body, max(0, len(body) - 200))
            yield from self._in_last_line(begin, body[: ending.start()] if ending else body)
        elif not self._whole_is_copied(body, whole) and (self.kind == "verdict" or not whole.remark):
            yield FinalAnswer(begin, len(self.text), whole, sure=False)

    def _whole_is_copied(self, body: str, whole: LabelReading) -> bool:
        if self.material is None:
            return False
        if whole.remark:
            return self.material.echoes(whole.core, context=body.strip()[: len(whole.core) + CONTEXT])
        return self.material.equals(self.text) or self.material.equals(body)

    def _in_last_line(self, begin: int, body: str) -> Iterator[FinalAnswer]:
        start = body.rfind("\n") + 1
        before = body[max(0, start - 200) : start].rstrip("*_ \t")
        if not before.strip() or not _SENTENCE_END.search(before) or before.rstrip("*_ \t\r\n").endswith(_ASKS):
            return
        found = self._value(body[start:])
        if found is None or found.remark or self._contradicted(found, body[:start]):
            return
        context = self.text[: begin + start][-CONTEXT:] + body[start:]
        if not (self.material and self.material.echoes(body[start:], context=context)):
            yield FinalAnswer(begin + start, len(self.text), found, sure=False)

    def _contradicted(self, found: LabelReading, before: str) -> bool:
        """Tell whether another line of the reply is another label."""
        lines = [line for line in before.splitlines() if 0 < len(line) < LONGEST_VALUE][-MOST_LINES:]
        return any(other is not None and other.value != found.value for other in map(self._value, lines))
