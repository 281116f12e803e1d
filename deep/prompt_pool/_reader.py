"""Read the answers of a reply, by docs/replies.md: where they may stand, which of them count, and what they say.

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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from deep.prompt_pool import _sayings
from deep.prompt_pool._material import CODE_LENGTH, Material, unique_pairs
from deep.prompt_pool._sayings import LONGEST_VALUE, STOP_TOKEN, LabelReading, normalise_label, pattern, read_label

if TYPE_CHECKING:
    from deep.prompt_pool._answer_form import AnswerForm

Kind = Literal["score", "verdict"]

# More line-initial braces than this is no answer, and bounds the work that a hostile reply can cause.
MOST_OBJECTS = 50
# Markers of an answer that are looked at, the last ones of a reply. It bounds the work as well.
MOST_MARKS = 500
# Objects inside each other in which an answer is looked for. The bound keeps a hostile reply from taking long. Chosen;
# no measurement is known.
DEEPEST = 6


class Place(NamedTuple):
    """A part of a reply that may be its answer.

    `sure` is whether it is named as the prompt asked; `strict` is true where only a bare label may stand.
    Its form is `text` where it runs from a marker to the next one or the end, and is not enclosed in anything.
    """

    start: int
    value_start: int
    end: int
    value: Any
    form: Literal["box", "json", "table", "text", "xml"]
    sure: bool = False
    strict: bool = False
    fields: dict[str, Any] | None = None


def after_thoughts(text: str) -> int | None:
    """Return where the reply begins behind the judge's hidden reasoning; None where that never ends.

    Examples
    --------
    >>> from deep.prompt_pool._reader import after_thoughts
    >>> after_thoughts("<think>Well.</think>NO"), after_thoughts("NO"), after_thoughts("<think>Well. NO")
    (20, 0, None)
    """
    begin = max((match.end() for match in pattern("thought_end").finditer(text)), default=0)
    return None if pattern("thought_start").search(text, begin) else begin


def line_marks(text: str, kind: Kind, tag: str | None) -> list[Place]:
    """Return the markers that begin a line, in order; each place ends where the marker does."""
    sign = rf"(?:[:\uff1a]|{pattern('sign').pattern})" if tag else "[:\uff1a]"
    spelled = rf"{pattern('start').pattern}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_` \t]{{0,8}}{sign}"
    marks = [
        Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)
        for mark in re.finditer(spelled, text, re.MULTILINE | re.IGNORECASE | re.ASCII)
    ]
    ends = {mark.end for mark in marks}
    others = [*_marks_behind_sentences(text, kind, tag), *(() if tag else _other_marks(text, kind))]
    return sorted([*marks, *(mark for mark in others if mark.end not in ends)])[-MOST_MARKS:]


def _suffix(tag: str | None) -> str:
    """Return the pattern of the code behind a marker: the one that it must carry, or any where it may do without."""
    return f"-{tag}" if tag else rf"(?:-[0-9a-f]{{{CODE_LENGTH}}})?"


def code_in(marker: str, kind: Kind) -> str:
    """Return the code that a marker carries, perhaps none."""
    result = re.search(rf"{kind}-([0-9a-f]{{{CODE_LENGTH}}})(?![^\W_])", marker, re.IGNORECASE)
    return result[1].casefold() if result else ""


def _marks_behind_sentences(text: str, kind: str, tag: str | None) -> Iterator[Place]:
    """Yield the markers that were asked for and stand behind a sentence in its line, where that is no quotation.

    Where a text that was shown holds one, the marker carries a code, or the answer is looked up in the text.
    """
    spelled = (
        rf"(?<=[^\W\d_]{{2}}[.!;])[ \t]{{1,3}}[*_`]{{0,3}}(?:final[ \t]+)?{kind}{_suffix(tag)}[*_`]{{0,3}}[:\uff1a]"
    )
    for mark in re.finditer(spelled, text, re.IGNORECASE):
        before = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        if not (before.lstrip().startswith((">", "|")) or before.count('"') % 2 or "\u201c" in before):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", sure=True)


def _other_marks(text: str, kind: str) -> Iterator[Place]:
    """Yield the markers in other words or with another sign than the prompt asked for."""
    for mark in [*pattern(f"other_{kind}").finditer(text)][-MOST_MARKS:]:
        before = text[max(0, mark.start() - 200) : mark.start()].rstrip(" \t\r\n*_")
        if not pattern("asks_else").search(before):
            yield Place(mark.start(), mark.end(), mark.end(), "", "text", strict=not mark["sign"])


def elements(text: str, kind: Kind, tag: str | None, begin: int) -> Iterator[Place]:
    """Yield the elements of the name that was asked for, of other names for an answer, and a first one of any name.

    The reply begins at `begin`, behind hidden reasoning. A score in an element of any name must be the whole reply.
    """
    body = text[begin:].strip()
    others = "" if tag else f"|{pattern('other_element').pattern}|(?P<any>{pattern('any_element').pattern})"
    name = rf"(?P<name>(?P<asked>{kind}{_suffix(tag)}){others})"
    spelled = (
        rf"<[ \t]{{0,4}}{name}[ \t]{{0,4}}>(?P<value>[^<]{{0,300}})<[ \t/<]{{0,8}}/[ \t<]{{0,4}}(?P=name)[ \t]{{0,4}}>"
    )
    for match in re.finditer(spelled, text, re.IGNORECASE | re.ASCII):
        sure, any_name = bool(match["asked"]), None if tag else match["any"]
        at = (match.start(), match.start("value"), match.end())
        if not any_name or (body.startswith(match[0]) if kind == "verdict" else body == match[0]):
            fields = {any_name: match["value"]} if any_name else None
            yield Place(*at, "" if fields else match["value"], "xml", sure, strict=not sure, fields=fields)


def tables(text: str, kind: Kind) -> Iterator[Place]:
    """Yield the cell below the name of the answer in tables with one row, as judges write them in Markdown."""
    for match in pattern("table").finditer(text):
        lines = (match[name].strip(" \t|").split("|") for name in ("head", "row"))
        head, row = ([cell.strip(" \t*_`") for cell in line] for line in lines)
        columns = [i for i, cell in enumerate(head) if pattern(f"{kind}_name").fullmatch(cell)]
        if len(columns) == 1 and len(head) == len(row):
            yield Place(match.start(), match.start("row"), match.end(), row[columns[0]], "table")


def boxes(text: str) -> Iterator[Place]:
    r"""Yield the contents of ``\boxed{...}`` and ``[[...]]``."""
    for match in pattern("box").finditer(text):
        yield Place(match.start(), match.start(match.lastgroup or 0), match.end(), match[match.lastgroup or 0], "box")


def objects(text: str, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield the objects that begin a line and have a key for the answer, also where they are not quite JSON."""
    end, cleared = 0, pattern("noise").sub(lambda noise: " " * len(noise[0]), text)
    # The last ones: an answer stands at the end, and what stands before may be reasoning.
    for match in list(pattern("object_start").finditer(text))[-MOST_OBJECTS:]:
        start = match.start(1)
        if start < end:
            continue
        if decoded := _decode(cleared, start):
            fields, end = decoded
            value, sure, holder = _answer_in(fields, kind, tag)
            yield Place(start, start, end, value, "json", sure, fields=holder)
        else:
            yield from _loose_object(text, start, kind, tag)


def _answer_in(fields: dict[str, Any], kind: Kind, tag: str | None) -> tuple[Any, bool, dict[str, Any]]:
    """Return the answer that an object holds, whether it stands under the key that was asked for, and its object.

    Where there is none but in a single object inside, or in a list of one, that object is looked at.
    """
    value, sure = _own_answer(fields, kind, tag)
    for _ in range(DEEPEST):
        if not isinstance(value, dict | list):
            return value, sure, fields
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        else:
            fields = value
            value, sure = _own_answer(fields, kind, tag)[0], False
    return None, False, fields


def _own_answer(fields: dict[str, Any], kind: Kind, tag: str | None) -> tuple[Any, bool]:
    values = [value for key, value in fields.items() if re.fullmatch(kind + _suffix(tag), key)]
    if tag or values:
        return (values[0], not isinstance(values[0], dict | list)) if len(values) == 1 else (None, False)
    names = _sayings.word_pattern(f"{kind}_keys").split("|")
    result = [value for key, value in fields.items() if re.sub(r"[\s_-]", "", key) in names]
    nested = result or [value for value in fields.values() if isinstance(value, dict | list)]
    return (nested[0] if len(nested) == 1 else None), False


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    """Return the JSON at `start`, the keys of objects in lower case, and where it ends."""
    try:
        return json.JSONDecoder(object_pairs_hook=unique_pairs, strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def entries(text: str) -> list[dict[str, Any]]:
    r"""Return the objects of the one list that a reply is, also where quotes in it are escaped as JSON does not allow.

    Examples
    --------
    >>> from deep.prompt_pool._reader import entries
    >>> said = '```json\n[{"fact": "It rained.", "response": "Yes"}, {"fact": "It\\\'s cold.", "response": "No"}]\n```'
    >>> entries(said)[1]
    {'fact': "It's cold.", 'response': 'No'}
    """
    start = text.find("[", after_thoughts(text) or 0)
    for form in (text, text.replace("\\'", "'")):
        listed = (_decode(form, max(start, 0)) or ((), 0))[0]
        result = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        if result and len(result) == len(listed):
            return result
    return []


def _loose_object(text: str, start: int, kind: Kind, tag: str | None) -> Iterator[Place]:
    """Yield an object with single quotes, without quotes, with quotes inside quotes or with a comma too many."""
    if (flat := pattern("flat").match(text, start)) is None:
        return
    result = list(pattern(f"loose_{kind}").finditer(flat[1])) or [*pattern("last_key").finditer(flat[1])][-1:]
    if tag and not (len(result) == 1 and code_in(result[0][0], kind) == tag):
        return
    value = pattern("loose_value").match(flat[1], result[0].end()) if len(result) == 1 else None
    if value:
        content = next(group for group in value.groups() if group is not None)
        has_key = result[0].re is pattern(f"loose_{kind}")
        yield Place(start, flat.start(1) + result[0].start(), flat.end(), content, "json", strict=not has_key)


Output = Literal["json", "text", "xml"]

CONTEXT_LENGTH = 40
"""The characters around an answer that stands by itself, by which a copy out of the document is known."""

# A statement of fewer characters may stand in any text by chance.
MIN_STATEMENT_LENGTH = 12


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
        The reply; of a very long one its beginning and its end, or its end alone.
    form : AnswerForm
        Whether a score or a label was asked for, and whether in an object, on a line, or in an element.
    cut : bool
        Whether the reply reached its length limit.
    material : Material or None
        What was asked about, where it is known.
    """

    text: str
    form: "AnswerForm"
    cut: bool
    material: Material | None

    @cached_property
    def _begin(self) -> int | None:
        begin = after_thoughts(self.text)
        if begin == 0 or self.material is None:
            return begin
        # Where a text holds such an end, the reply's may be a copy, and what stands behind it too.
        ends = (pattern("thought_end").search(text.replace("\u200b", "")) for text in self.material.texts)
        return 0 if any(ends) else begin

    @cached_property
    def _tag(self) -> str | None:
        """The code that an answer must carry; None where it may do without, as far as is known."""
        if self.material is None or (self.form.output == "json" and not self.material.coded):
            return None
        return self.material.tag(self.form.kind) or None

    def final_answers(self) -> list[FinalAnswer]:
        """Return the answers that close the reply, last first; several where it repeats or contradicts itself.

        Where the last one has another form than was asked for, all that can be read in the reply come with it.
        """
        answers = self.readable_answers
        final: list[FinalAnswer] = []
        rest = len(self.text)
        for answer in reversed(answers):
            closes = pattern("between").fullmatch(self.text, answer.end, rest)
            if not closes and not (answer is answers[-1] and self._is_explained(answer)):
                break
            final.append(answer)
            rest = answer.start
        if final and final[0].sure:
            return [answer for answer in final if answer.sure]
        return [*final, *answers[: len(answers) - len(final)]] if final else self._closing_statements(answers)

    def _closing_statements(self, answers: Sequence[FinalAnswer]) -> list[FinalAnswer]:
        """Return the statements at the beginning and the end of the reply, where no code was asked for."""
        begin, scored = self._begin, self.form.scale and not self.form.words
        sure = [mark.end for mark in self._marks if mark.sure and mark.end >= (begin or 0)]
        if begin is None or self._tag or (sure and not scored):
            return []
        if answers:
            return [*answers] if all(answer.place and self._has_a_line(answer.place) for answer in answers) else []
        body = self.text[begin:]
        if self.form.scale and scored:
            marked = sure[-1] - begin if sure else None
            one = _sayings.rating_in(body, self.form.scale, first=self.form.answer_first, marked=marked)
            result = [one] if one else []
        else:
            result = _sayings.statements_in(body, self.form.words)
        marker = pattern("asked_verdict")
        marks = list(marker.finditer(body)) if self.form.kind == "verdict" else []
        behind = _sayings.statements_in(body[marks[-1].end() :], self.form.words) if marks else result
        if marks and not all(marker.search(body, *one[1:]) for one in result):
            return []  # what was asked for stands there, in a form that cannot be read
        if {one.value for one in result} != {one.value for one in behind}:
            return []  # its answer stands before the last marker
        return [
            FinalAnswer(begin + one.start, begin + one.end, LabelReading(one.value, word, word), False)
            for one in result
            if one.value is not None
            and (word := body[one.start : one.end])
            and not (self.cut and one.end == len(body))
            and not self._repeats(begin + one.start, begin + one.end)
        ]

    def _repeats(self, start: int, end: int) -> bool:
        """Tell whether a statement could end in a copy; one of a word or two only where its line could be one."""
        if self.material is None:
            return False
        passage = self.text[start:end].strip()
        before, behind = self.text.rfind("\n", 0, start) + 1, self.text.find("\n", end)
        line = self.text[before : behind if behind >= 0 else None]
        parts = [part for whole in (line, passage) for part in (whole, re.split("[:\uff1a]", whole, maxsplit=1)[-1])]
        kind = self.form.kind
        value = re.split(rf"\b{kind}\b", line, maxsplit=1, flags=re.IGNORECASE)[-1]  # also where no colon follows
        if any(self.material.equals(part) or self.material.holds(kind, part) for part in (value, *parts)):
            return True
        around = STOP_TOKEN.sub(" ", self.text[start : end + CONTEXT_LENGTH]).strip()
        if len(passage) < MIN_STATEMENT_LENGTH and passage == around == self.text[:end].strip():
            return False
        context = passage[-2 * MIN_STATEMENT_LENGTH :] if len(passage) >= MIN_STATEMENT_LENGTH else around
        return any(self.material.echoes(part, context=context) for part in (passage, parts[-1]))

    @cached_property
    def _marks(self) -> list[Place]:
        return line_marks(self.text, self.form.kind, self._tag)

    def _has_a_line(self, place: Place) -> bool:
        """Tell whether an element stands on lines of its own, or a box, so that what follows may be anything."""
        if place.form == "box" or (place.form == "text" and place.strict):
            return True
        before = self.text[max(0, place.start - CONTEXT_LENGTH) : place.start].rstrip(" \t")
        behind = self.text[place.end : place.end + CONTEXT_LENGTH].lstrip(" \t")
        return place.form == "xml" and not place.fields and before[-1:] in ("", "\n") and behind[:1] in ("", "\n")

    def _is_explained(self, answer: FinalAnswer) -> bool:
        """Tell whether what stands in the lines behind an element or an object is its reason."""
        behind = pattern("next_line").match(self.text, answer.end)
        if behind is None or self.cut or answer.place is None or answer.place.form == "text":
            return False
        remark = STOP_TOKEN.sub(" ", self.text[behind.end() :]).strip()
        others = [label for label, polarity in self.form.words.items() if polarity != answer.reading.value]
        return _sayings.explains(remark, int(answer.reading.value), others)

    @property
    def readable_answers(self) -> list[FinalAnswer]:
        """Whatever can be read as an answer, in the order in which it stands."""
        begin = self._begin
        if begin is None:
            return []
        marks = [mark for mark in self._marks if mark.end >= begin]
        places = [place for place in self._structures() if place.end > begin]
        result = [*self._in_lines(marks), *(answer for place in places for answer in self._read(place))]
        return sorted(result, key=lambda answer: (answer.start, answer.end))

    def _in_lines(self, marks: Sequence[Place]) -> Iterator[FinalAnswer]:
        """Yield the answers behind markers; another marker than the one asked for, with no answer, is none."""
        ends = zip(marks, self._ends(marks), strict=True)
        markers = [mark for mark, end in ends if mark.sure or any(self._read(self._place_behind(mark, end)))]
        for mark, end in zip(markers, self._ends(markers), strict=True):
            yield from self._read(self._place_behind(mark, end))

    def _ends(self, marks: Sequence[Place]) -> list[int]:
        return [*[mark.start for mark in marks[1:]], len(self.text)][: len(marks)]

    def _place_behind(self, mark: Place, end: int) -> Place:
        section = pattern("section").match(self.text, mark.end, end) if mark.strict else None
        end = section.end() if section else end
        return mark._replace(value=self.text[mark.end : end], value_start=mark.end, end=end)

    def _structures(self) -> Iterator[Place]:
        yield from elements(self.text, self.form.kind, self._tag, self._begin or 0)
        if not self._tag or self.form.output == "json":
            yield from objects(self.text, self.form.kind, self._tag)
        if not self._tag:
            yield from boxes(self.text)
            yield from tables(self.text, self.form.kind)

    def _read(self, place: Place) -> Iterator[FinalAnswer]:
        """Yield an answer where a place holds a label, or a number on the scale, and nothing that takes it back."""
        last = place.end == len(self.text)
        if place.form == "text" and self.cut and last and (not place.sure or self._may_go_on(place.value)):
            return  # "The answer is SUPPORTED", cut off, may go on with "if"
        value = self._read_value(place.value, strict=place.strict)
        result = value or (None if self._tag else self._only_label(place.fields or {}))
        alone = place.strict or (place.form == "text" and (self.cut or not last))
        if result is None or (alone and result.remark):
            return
        word = (result.core, str(place.value)) if place.strict or not value else ()
        sure = place.sure and place.form == self.form.output
        copied = self.material and any(map(self.material.equals, word))
        if not copied and not self._is_copied(place, result, sure=sure):
            yield FinalAnswer(place.start, place.end, result, sure, place)

    def _may_go_on(self, value: str) -> bool:
        """Tell whether `value` could begin an answer with another meaning that the length limit cut off."""
        if not value[-1:].isalnum() or len(value) > LONGEST_VALUE:
            return False
        plain = normalise_label(value)
        read = read_label(value, self.form.words)
        others = (normalise_label(label) for label, polarity in self.form.words.items() if polarity != read)
        return self.form.kind == "score" or any(label != plain and label.startswith(plain) for label in others)

    def _is_copied(self, place: Place, reading: LabelReading, *, sure: bool) -> bool:
        """Tell whether an answer could have been copied from the material."""
        if self.material is None:
            return False
        whole, marker = self.text[place.start : place.end], self.text[place.start : place.value_start]
        if place.form == "json":
            marker = whole if place.fields is None else " ".join(place.fields)
        code = code_in(marker, self.form.kind)
        if code:  # no text holds the code, and another one answers another question
            return code != (self._tag or self.material.code)
        if place.fields is not None and self.material.repeats(place.fields):
            return True
        # An object with words of the judge's own beside its answer is no copy of a verdict alone.
        if len(place.fields or ()) < 2 and self.material.holds(self.form.kind, reading.core):
            return True
        if sure and not self.material.bare:
            return False
        inner = self.text[place.value_start : place.end]
        if place.form == "table":
            return self.material.echoes(inner, context=whole)
        if place.form == "json" and place.fields is None and self.material.echoes(inner, context=inner):
            return True
        passage = self.text[place.start : place.value_start] + reading.core if place.form == "text" else whole
        return self.material.echoes(passage, context=passage)

    def _only_label(self, fields: Mapping[str, Any]) -> LabelReading | None:
        """Return the one label that stands in an object, whatever its key, or is a key that is true or false."""
        blames = _sayings.vocabulary(tuple(self.form.words.items())).blames
        values = [value for key, value in fields.items() if not blames(key)]
        result = [word for word in map(self._read_value, values) if word and not word.remark]
        for key, value in fields.items() if not result and self.form.words else ():
            if (word := json.dumps(value).strip('"').casefold()) in ("yes", "true", "no", "false"):
                text = ("not " if word in ("no", "false") else "") + pattern("of_key").sub("", key).replace("_", " ")
                values = [value for value, *_ in _sayings.statements_in(text, self.form.words)]
                result += [LabelReading(value or 0, text, text) for value in values if value in (0, 1)]
        return result[0] if len(result) == 1 else None

    def _read_value(self, value: Any, *, strict: bool = True) -> LabelReading | None:
        text = json.dumps(value) if isinstance(value, bool | int | float) else value
        if isinstance(value, bool) and read_label(str(text), self.form.words) is None:
            text = "yes" if value else "no"
        form, is_text = self.form, isinstance(text, str)
        return _sayings.read_value(text, form.words, form.scale, strict=strict) if is_text else None
