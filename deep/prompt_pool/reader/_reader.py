"""Read the answers of a reply, by docs/replies.md, and make a judgment of them.

Only what closes or opens the reply is an answer: labels in the reasoning, in a quotation or in an echo of the task are
passed over, because they do not stand there, are not delimited, or do not carry the code that the prompt asked for. An
answer in another form than the prompt asked for counts only where nothing else in the reply disagrees with it, and
where it could not have been copied from the document.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from deep.prompt_pool._material import Material
from deep.prompt_pool.reader._places import (
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
from deep.prompt_pool.reader._sayings import STOP_TOKEN, LabelReading, explains, rated, read_value, stated
from deep.prompt_pool.reader._words import LONGEST_VALUE, normalise_label, read_label

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
        """Return the statements at the beginning and the end of the reply, where no code was asked for."""
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
