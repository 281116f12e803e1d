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
from deep.prompt_pool.reader import _places
from deep.prompt_pool.reader._places import Kind, Place
from deep.prompt_pool.reader._sayings import STOP_TOKEN, LabelReading, explains, rated, read_value, stated
from deep.prompt_pool.reader._words import LONGEST_VALUE, normalise_label, pattern, read_label, vocabulary

Output = Literal["json", "text", "xml"]

CONTEXT = 40
"""Characters around an answer that stands by itself, by which a copy out of the document is known."""

SHORT = 12
"""Characters of a statement that may stand in any text by chance."""


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
        begin = _places.after_thoughts(self.text)
        if begin == 0 or self.material is None:
            return begin
        # Where a text holds such an end, the reply's may be a copy, and what stands behind it too.
        ends = (pattern("thought_end").search(text.replace("\u200b", "")) for text in self.material.texts)
        return 0 if any(ends) else begin

    @cached_property
    def _tag(self) -> str | None:
        """The code that an answer must carry; None where it may do without, as far as is known."""
        if self.material is None or (self.output == "json" and not self.material.coded):
            return None
        return self.material.tag(self.kind) or None

    def final_answers(self) -> list[FinalAnswer]:
        """Return the answers that close the reply, last first; several where it repeats or contradicts itself.

        Where the last one has another form than was asked for, all that can be read in the reply come with it.
        """
        known = self.known
        final: list[FinalAnswer] = []
        rest = len(self.text)
        for answer in reversed(known):
            closes = pattern("between").fullmatch(self.text, answer.end, rest)
            if not closes and not (answer is known[-1] and self._explained(answer)):
                break
            final.append(answer)
            rest = answer.start
        if final and final[0].sure:
            return [answer for answer in final if answer.sure]
        return [*final, *known[: len(known) - len(final)]] if final else self._stated(known)

    def _stated(self, known: Sequence[FinalAnswer]) -> list[FinalAnswer]:
        """Return the statements at the beginning and the end of the reply, where no code was asked for."""
        begin, scored = self._begin, self.scale and not self.labels
        sure = [mark.end for mark in self._marks if mark.sure and mark.end >= (begin or 0)]
        if begin is None or self._tag or (sure and not scored):
            return []
        if known:
            return [*known] if all(answer.place and self._has_a_line(answer.place) for answer in known) else []
        body = self.text[begin:]
        if self.scale and scored:
            one = rated(body, self.scale, first=self.first, marked=sure[-1] - begin if sure else None)
            found = [one] if one else []
        else:
            found = stated(body, self.labels)
        asked = pattern("asked_verdict")
        marks = list(asked.finditer(body)) if self.kind == "verdict" else []
        behind = stated(body[marks[-1].end() :], self.labels) if marks else found
        if marks and not all(asked.search(body, *one[1:]) for one in found):
            return []  # what was asked for stands there, in a form that cannot be read
        if {one.value for one in found} != {one.value for one in behind}:
            return []  # its answer stands before the last marker
        return [
            FinalAnswer(begin + one.start, begin + one.end, LabelReading(one.value, said, said), False)
            for one in found
            if one.value is not None
            and (said := body[one.start : one.end])
            and not (self.cut and one.end == len(body))
            and not self._repeats(begin + one.start, begin + one.end)
        ]

    def _repeats(self, start: int, end: int) -> bool:
        """Tell whether a statement could end in a copy; one of a word or two only where its line could be one."""
        if self.material is None:
            return False
        said = self.text[start:end].strip()
        before, behind = self.text.rfind("\n", 0, start) + 1, self.text.find("\n", end)
        line = self.text[before : behind if behind >= 0 else None]
        parts = [part for whole in (line, said) for part in (whole, re.split("[:\uff1a]", whole, maxsplit=1)[-1])]
        value = re.split(rf"\b{self.kind}\b", line, maxsplit=1, flags=re.IGNORECASE)[-1]  # also where no colon follows
        if any(self.material.equals(part) or self.material.holds(self.kind, part) for part in (value, *parts)):
            return True
        around = STOP_TOKEN.sub(" ", self.text[start : end + CONTEXT]).strip()
        if len(said) < SHORT and said == around == self.text[:end].strip():
            return False
        context = said[-2 * SHORT :] if len(said) >= SHORT else around
        return any(self.material.echoes(part, context=context) for part in (said, parts[-1]))

    @cached_property
    def _marks(self) -> list[Place]:
        return _places.line_marks(self.text, self.kind, self._tag)

    def _has_a_line(self, place: Place) -> bool:
        """Tell whether an element stands on lines of its own, or a box, so that what follows may be anything."""
        if place.form == "box" or (place.form == "text" and place.strict):
            return True
        before = self.text[max(0, place.start - CONTEXT) : place.start].rstrip(" \t")
        behind = self.text[place.end : place.end + CONTEXT].lstrip(" \t")
        return place.form == "xml" and not place.fields and before[-1:] in ("", "\n") and behind[:1] in ("", "\n")

    def _explained(self, answer: FinalAnswer) -> bool:
        """Tell whether what stands in the lines behind an element or an object is its reason."""
        behind = pattern("next_line").match(self.text, answer.end)
        if behind is None or self.cut or answer.place is None or answer.place.form == "text":
            return False
        remark = STOP_TOKEN.sub(" ", self.text[behind.end() :]).strip()
        others = [label for label, polarity in self.labels.items() if polarity != answer.reading.value]
        return explains(remark, int(answer.reading.value), others)

    @property
    def known(self) -> list[FinalAnswer]:
        """Whatever can be read as an answer, in the order in which it stands."""
        begin = self._begin
        if begin is None:
            return []
        marks = [mark for mark in self._marks if mark.end >= begin]
        places = [place for place in self._structures() if place.end > begin]
        found = [*self._in_lines(marks), *(answer for place in places for answer in self._read(place))]
        return sorted(found, key=lambda answer: (answer.start, answer.end))

    def _in_lines(self, marks: Sequence[Place]) -> Iterator[FinalAnswer]:
        """Yield the answers behind markers; another marker than the one asked for, with no answer, is none."""
        ends = zip(marks, self._ends(marks), strict=True)
        kept = [mark for mark, end in ends if mark.sure or any(self._read(self._behind(mark, end)))]
        for mark, end in zip(kept, self._ends(kept), strict=True):
            yield from self._read(self._behind(mark, end))

    def _ends(self, marks: Sequence[Place]) -> list[int]:
        return [*[mark.start for mark in marks[1:]], len(self.text)][: len(marks)]

    def _behind(self, mark: Place, end: int) -> Place:
        section = pattern("section").match(self.text, mark.end, end) if mark.strict else None
        end = section.end() if section else end
        return mark._replace(value=self.text[mark.end : end], value_start=mark.end, end=end)

    def _structures(self) -> Iterator[Place]:
        yield from _places.elements(self.text, self.kind, self._tag, self._begin or 0)
        if not self._tag or self.output == "json":
            yield from _places.objects(self.text, self.kind, self._tag)
        if not self._tag:
            yield from _places.boxes(self.text)
            yield from _places.tables(self.text, self.kind)

    def _read(self, place: Place) -> Iterator[FinalAnswer]:
        """Yield an answer where a place holds a label, or a number on the scale, and nothing that takes it back."""
        last = place.end == len(self.text)
        if place.form == "text" and self.cut and last and self._may_go_on(place.value):
            return
        named = self._value(place.value, strict=place.strict)
        found = named or (None if self._tag else self._only_label(place.fields or {}))
        alone = place.strict or (place.form == "text" and (self.cut or not last))
        if found is None or (alone and found.remark):
            return
        said = (found.core, str(place.value)) if place.strict or not named else ()
        sure, copied = place.sure and place.form == self.output, self.material and any(map(self.material.equals, said))
        if not copied and not self._is_copied(place, found, sure=sure):
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
        whole, marker = self.text[place.start : place.end], self.text[place.start : place.value_start]
        if place.form == "json":
            marker = whole if place.fields is None else " ".join(place.fields)
        code = _places.code_in(marker, self.kind)
        if code:  # no text holds the code, and another one answers another question
            return code != (self._tag or self.material.code)
        if place.fields is not None and self.material.repeats(place.fields):
            return True
        # An object with words of the judge's own beside its answer is no copy of a verdict alone.
        if len(place.fields or ()) < 2 and self.material.holds(self.kind, found.core):
            return True
        if sure and not self.material.bare:
            return False
        inner = self.text[place.value_start : place.end]
        if place.form == "table":
            return self.material.echoes(inner, context=whole)
        if place.form == "json" and place.fields is None and self.material.echoes(inner, context=inner):
            return True
        said = self.text[place.start : place.value_start] + found.core if place.form == "text" else whole
        return self.material.echoes(said, context=said)

    def _only_label(self, fields: Mapping[str, Any]) -> LabelReading | None:
        """Return the one label that stands in an object, whatever its key, or is a key that is true or false."""
        blames = vocabulary(tuple(self.labels.items())).blames
        values = [value for key, value in fields.items() if not blames(key)]
        found = [said for said in map(self._value, values) if said and not said.remark]
        for key, value in fields.items() if not found and self.labels else ():
            if (said := json.dumps(value).strip('"').casefold()) in ("yes", "true", "no", "false"):
                text = ("not " if said in ("no", "false") else "") + pattern("of_key").sub("", key).replace("_", " ")
                found += [LabelReading(v or 0, text, text) for v, *_ in stated(text, self.labels) if v in (0, 1)]
        return found[0] if len(found) == 1 else None

    def _value(self, value: Any, *, strict: bool = True) -> LabelReading | None:
        said = json.dumps(value) if isinstance(value, bool | int | float) else value
        if isinstance(value, bool) and read_label(str(said), self.labels) is None:
            said = "yes" if value else "no"
        return read_value(said, self.labels, self.scale, strict=strict) if isinstance(said, str) else None
