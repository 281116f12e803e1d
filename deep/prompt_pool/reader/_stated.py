"""What a reply states in sentences of its own: at its beginning, before its reasons, or at its end, behind them."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from deep.prompt_pool._values import normalise_label, number_of

WINDOW = 1500
"""Characters at either end of a reply in which a statement is looked for."""

_WORD = r"[\w'\u2019-]+"
_ANSWER = r"(?:answer|verdict|conclusion|response|decision|judge?ment|label|outcome|result|choice|rating|score|output)"
_SENTENCE = re.compile(r"(?:[^.!?\u3002\uff01\uff1f\n]|[.](?=[^\s]))+[.!?\u3002\uff01\uff1f]*[\"'\u201d\u2019)*_`]*")
_ITEM = re.compile(r"[\s>#*_`\"'\u201c\u2018|\\-]*(?:\(?(?:\d{1,2}|[a-e])[.):][\s*_]*)?")
_LEAD = re.compile(
    rf"(?:(?:so|therefore|thus|hence|overall|consequently|accordingly|finally|as a result|in (?:conclusion|summary|short|sum)"
    rf"|to (?:conclude|sum up)|it follows that|this means(?: that)?|(?:final|last) step|step \d{{1,2}}|(?P<name>(?:final )?{_ANSWER})(?: ?\([^()\n]{{1,60}}\))?(?=[*_ ]*[:=\u2010-\u2015])"
    rf"|explanation|analysis|reasoning"
    r"|(?:based on|given|considering|in light of|after|from) [^,\n]{1,120}(?=,)"
    r"|(?:根据|基于|综合|由于)[^，,\n]{1,40}(?=[，,])|所以|因此|综上(?:所述)?|判断|结论|答案"
    r"|(?:i|we) (?:(?:would|must|have to|can|will|have) )?(?:therefore )?(?:conclude|concluded|find|judge|decide|determined?|say|answer|choose|mark|classify)"
    r"(?: that| it(?: as)?)?(?! between))[\s,:：，*_-]+)",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"(?P<subject>(?:{_WORD}[ \t]+){{0,8}}?)(?:{_WORD}[*_]*[ \t]+)?(?P<verb>(?:is|are|was|were|be|been|remains?|ist|lautet|est|es|è|é"
    r"|holds?|contains?|has|have|shows?|includes?|found|find|finds|see|there(?:'s| is| are)|isn[’']t|aren[’']t|doesn[’']t|don[’']t|does|do|did"
    r"|marked|classified|rated|labell?ed|deemed|considered|judged|as)\b[\s,:*_\"'\u2018\u201c`(\[]*)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"(?:(?P<not>not|n[’']t|no|never|hardly|nicht|pas|non|不|并不|free (?:of|from)|without)\b|(?P<soft>entirely|fully|completely|wholly|quite"
    r"|totally|altogether|necessarily|really|strictly)\b"
    r"|(?:therefore|thus|hence|clearly|directly|indeed|also|then|deemed|considered|rated|marked|classified|labell?ed|judged|as|to be|be|been|"
    r"an?|any|the|that|it|is|are|hold|contain|have|show|include|best|overall|definitely|certainly|factually|well)\b)[\s,:*_\"'\u2018\u201c`(\[]*",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"[?？]|\b(?:maybe|perhaps|possibl[ey]|probabl[ey]|arguabl[ey]|unsure|uncertain\w*|either|whether|if|unless|could|might|may|would(?! (?:say|score|rate|give|conclude))"
    r"|cannot be|can't be|partial\w*|partly|in part|mostly|somewhat|more or less|some would|others|depend\w*|seems?|appears?|i think|or)\b",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"\b(?:wait|hmm+|on (?:second thoughts?|reflection)|scratch that|never mind|correction|reconsider\w*|changed? my mind|i was wrong|that is not right)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"[\"\u201c]|\b(?:says?|said|states?|reads?|wrote|writes|claims? that|according|some|others|he|she|they|someone|who|which)\b",
    re.I,
)
_TAIL = re.compile(
    r"[\s*_`\"'\u2019\u201d)\]]*(?:$|[.,;:!\u3002\uff0c\uff1a\uff01\n(]|[\u2010-\u2015-]|(?:because|since|as|by|in|with|for|due|given|from|according|than|based|under|on)\b)",
    re.I,
)
_PREFERRED = re.compile(
    r"[\s*_`\"')\]]*(?:is|was|=)\s+(?:(?P<not>not)\s+)?(?:(?:clearly|the|a|overall|therefore|slightly|much|far)\s+)*(?:better|best|preferable|preferred|superior|winner|more suitable|chosen|correct)\b",
    re.I,
)
_BARE = frozenset(
    [
        "yes",
        "no",
        "y",
        "n",
        "a",
        "b",
        "c",
        "d",
        "e",
        "true",
        "false",
        "ja",
        "nein",
        "oui",
        "non",
        "sí",
        "si",
        "да",
        "нет",
    ]
)


_PREDICATE = re.compile(
    r"\b(?:claim|statement|summary|candidate|answer|response|sentence|hypothesis|it|that|this) (?:is|was)(?: (?P<not>not|n't))?(?: \w+ly)?"
    r" (?:(?P<good>correct|supported|consistent|accurate|true|faithful|right)|(?:incorrect|inconsistent|unsupported|false|wrong|inaccurate))\b",
    re.I,
)


_CLAIM = re.compile(
    r"\b(?:claims?|statements?|summary|sentences?|hypothesis|assertion|text|passage|it|this|that|there|i|we|candidate|continuation|reply"
    r"|source|article|document|content|translation|argument|facts?|evidence|details?|response|nothing|none|no)\b",
    re.I,
)


_SO = re.compile(r"[,;:\u2014] (?:and )?(?P<so>(?:so|therefore|thus|hence|consequently|which means|meaning)\b)", re.I)


class Stated(NamedTuple):
    """A statement: its value, None where it leaves the verdict open, and where it stands."""

    value: float | None
    start: int
    end: int


class _Vocabulary(NamedTuple):
    labels: Mapping[str, int]
    pattern: re.Pattern[str]


@lru_cache(maxsize=64)
def _vocabulary(labels: tuple[tuple[str, int], ...]) -> _Vocabulary:
    """Return the labels with what their words mean negated, and the pattern that finds them."""
    known = {normalise_label(label): polarity for label, polarity in labels}
    for label, polarity in [*known.items()]:
        core = re.sub(r"^(?:an?|no|not|any) ", "", label)
        if core != label and polarity in (0, 1):
            known.setdefault(core, 1 - polarity if label.startswith(("no", "not")) else polarity)
    for label, polarity in [*known.items()]:
        if polarity in (0, 1) and label.isascii() and label.isalpha() and label not in _BARE and len(label) > 3:
            for prefix in ("un", "in", "non", "un-", "non-", "dis"):
                known.setdefault(normalise_label(prefix + label), 1 - polarity)
    gap = r"[\s*_`\"'\u2010-\u2015()-]+"
    words = (
        re.escape(label).replace(r"\ ", gap) if label.isascii() else re.escape(label)
        for label in sorted(known, key=lambda label: (-len(label), label))
    )
    return _Vocabulary(known, re.compile(rf"(?<![a-z0-9])(?:{'|'.join(words)})(?:s|es)?(?![a-z0-9])", re.IGNORECASE))


def _sentences(text: str, base: int) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text that are no quotation and no answer to a question in it, and where they begin."""
    asked = False
    for match in _SENTENCE.finditer(text):
        if any(map(str.isalnum, match[0])):
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            quoted = (line.lstrip() or match[0].lstrip()).startswith((">", "|"))
            if not (asked or quoted):
                yield base + match.start(), match[0]
            asked = match[0].rstrip(" *_\"')").endswith(("?", "\uff1f"))


def statement(
    sentence: str, labels: Mapping[str, int], *, opens: bool = False, starts: bool = True
) -> float | str | None:
    """Return what a sentence states: a polarity, ``open`` where it leaves the verdict open, None where it states none."""
    known = _vocabulary(tuple(labels.items()))
    at = _ITEM.match(sentence).end()
    while not known.pattern.match(sentence, at) and (lead := _LEAD.match(sentence, at)):
        if lead["name"] and not (starts or lead["name"].casefold().startswith("final")):
            return None
        at = _ITEM.match(sentence, lead.end()).end()
    first = known.pattern.search(sentence, at)
    if first is None:
        return None
    found = _framed(sentence, at, first, known)
    if found is None:
        ends = [match.start("so") for match in _SO.finditer(sentence, at)]
        return statement(sentence[ends[-1] :], labels, opens=opens, starts=False) if ends else None
    value, end = found
    if (
        value is None
        or _UNSURE.search(sentence[at:end])
        or re.match(
            r"\s*(?:[,(]\s*)?(?:but|if|or|in part|to some|except|unless|for the most)\b|\s*[?？]", sentence[end:], re.I
        )
    ):
        return "open"
    others = {_own(known, match) for match in known.pattern.finditer(sentence, end)}
    if opens and others - {value}:
        return value if normalise_label(first[0]) in _BARE or _PREFERRED.match(sentence, first.end()) else None
    return value if others <= {value} or _PREFERRED.match(sentence, first.end()) else "open"


def _own(known: _Vocabulary, match: re.Match[str]) -> int:
    said = normalise_label(re.sub(r"[()]", " ", match[0]))
    return next(
        (
            known.labels[form]
            for form in (normalise_label(match[0]), said, said.removesuffix("s"), said.removesuffix("es"))
            if form in known.labels
        ),
        -1,
    )


def _framed(sentence: str, at: int, first: re.Match[str], known: _Vocabulary) -> tuple[int | None, int] | None:
    """Return the value of the first label where it is what the sentence says of its subject, and where it ends."""
    value = _own(known, first)
    preferred = _PREFERRED.match(sentence, first.end())
    if preferred and first.start() == at:
        return (1 - value if preferred["not"] and value in (0, 1) else value), preferred.end()
    before = sentence[at : first.start()]
    bare = normalise_label(first[0]) in _BARE
    negations, soft = 0, False
    if before.strip(" *_`\"'\u201c\u2018([{$\\|"):
        if not first[0].isascii():
            if len(before) > 40:
                return None
            negations = int(before.rstrip().endswith(("不", "并不", "未")))
        else:
            subject = _SUBJECT.match(before)
            if subject and re.search(r"\b(?:no|ne|n|non|nicht|не)[\s'\u2019]*$", before[: subject.start("verb")], re.I):
                return None, first.end()
            if subject is None or _REPORTED.search(before[: subject.start("verb")]):
                return None
            rest, said = (
                before[subject.start("verb") :],
                subject["subject"] + before[subject.end("subject") : subject.start("verb")],
            )
            if bare and first[0].casefold() not in ("true", "false") and not re.search(_ANSWER, said, re.I):
                return None
            negations = bool(re.match(r"(?:no|nothing|none|neither)\b", said.strip(), re.I)) + len(
                re.findall(r"n[’']t\b", rest)
            )
            position = subject.end("verb") - subject.start("verb")
            while position < len(rest):
                link = _BETWEEN.match(rest, position)
                if link is None:
                    return None
                negations += bool(link["not"])
                soft = soft or bool(link["soft"])
                position = link.end()
            if negations and ((bare and first[0].casefold() not in ("true", "false")) or not _CLAIM.search(said)):
                return None, first.end()
    if not _TAIL.match(sentence, first.end()) and first[0].isascii():
        return None
    if (
        first.start() == at
        and sentence[first.end() :].lstrip("*_`\"')").startswith(",")
        and not (bare or first[0].isupper())
    ):
        return None  # "Output (b), on the other hand, ..." only names what it speaks of
    if negations and value in (0, 1):
        return (None if negations > 1 else 1 - value), first.end()
    return value, first.end()


_NUMBER = r"(?P<n>\d+(?:\.\d+)?|zero|one|two|three|four|five|six|seven|eight|nine|ten)"
_RATED = (
    re.compile(
        rf"\b(?:scor\w*|rat(?:e|ed|ing|es)|grade\w*)\b(?:[^\d.\n]|[.](?=\S)){{0,60}}?(?<![-\d.])\b{_NUMBER}\b(?!\s*(?:to|-|\u2013|or)\s*\d)(?:\s*(?:/|out of)\s*(?P<top>\d+))?",
        re.I,
    ),
    re.compile(rf"(?<![-\d.])\b{_NUMBER}\s*(?:/|out of)\s*(?P<top>\d+|five|ten)\b", re.I),
    re.compile(rf"(?<![-\d.])\b{_NUMBER}[ -](?:stars?|points?)\b", re.I),
    re.compile(rf"(?<=[.!\n])[\s*_`]+{_NUMBER}[\s*_`.]*\Z", re.I),
)
_BEGIN = re.compile(
    rf"[*_`\"'(\[]{{0,9}}(?:(?:score|rating)\b[\s:*_`]{{0,9}})?{_NUMBER}(?P<unit>\s{{0,3}}(?:/|out of)\s{{0,3}}(?P<top>\d+)|[ -]stars?|\s{{0,3}}points?|%)?"
    r"(?P<end>[*_`\"')\]]{0,9}(?:\s*\Z|[.,;:!]?\s{0,9}\n|[.:;!,](?=\s)|\s?\u2014|\s-\s|\s?\())?",
    re.I,
)
_RANGE = {
    True: re.compile(r"\s?(?:-|\u2013|to|or)\s?\d", re.I),
    False: re.compile(r"\s?(?:-|\u2013|to|or|,)\s?\d|\.\s+\S", re.I),
}
_SCALE_TALK = re.compile(r"\b(?:scale|range)\b[^.\n]{0,30}$|\b(?:with|where)\s+$", re.I)


def rated(text: str, scale: tuple[float, float], *, first: bool) -> Stated | None:
    """Return the one score that a reply gives: at its very beginning, or wherever it says that it rates."""
    low, high = scale
    begin = _BEGIN.match(text[:200].lstrip())
    if begin and (first or begin["unit"] or begin["end"]) and not _RANGE[first].match(begin.string, begin.end("n")):
        value = _value(begin, low, high)
        if value is not None and first:
            return Stated((value - low) / (high - low), 0, len(text) - len(text.lstrip()) + begin.end("n"))
    else:
        begin, value = None, None
    said = {value: (begin.start("n"), begin.end("n"))} if begin and value is not None else {}
    parts = {0: text} if len(text) <= 2 * WINDOW else {0: text[:WINDOW], len(text) - WINDOW: text[-WINDOW:]}
    for base, part in parts.items():
        for match in (match for where in _RATED for match in where.finditer(part)):
            number = _value(match, low, high)
            if number is not None and not _SCALE_TALK.search(part[max(0, match.start() - 40) : match.start()]):
                said[number] = base + match.start("n"), base + match.end("n")
        if _TURNS.search(part):
            return None
    if len(said) != 1:
        return None
    ((number, (start, end)),) = said.items()
    return Stated((number - low) / (high - low), start, end)


def _value(match: re.Match[str], low: float, high: float) -> float | None:
    number, top = number_of(match["n"]), match.groupdict().get("top")
    if number is None or not low <= number <= high or (top and number_of(top) != high):
        return None
    return number


def stated(text: str, labels: Mapping[str, int], *, first: bool) -> list[Stated]:
    """Return the statements of a reply's beginning and end that agree; empty where it makes none or they differ."""
    head = [*_sentences(text[:WINDOW], 0)][:2]
    rest = max(0, len(text) - WINDOW)
    tail = [*_sentences(text[rest:], rest)][-3:]
    found: list[Stated] = []
    opening = None
    for i, (start, sentence) in enumerate([*head[:1], *tail]):
        said = (
            _opening(text, start, sentence, labels)
            if i == 0
            else statement(sentence, labels, starts="\n" in text[max(0, start - 1) : start + 1] or not start)
        )
        if said == "open" and i in (0, len(tail)):
            return []
        if said is not None and said != "open":
            found.append(Stated(float(said), start, start + len(sentence)))
            opening = opening or i == 0
    last_line = text.rstrip().rfind("\n") + 1
    closing = [one for one in found if tail and (one.start == tail[-1][0] or one.start >= last_line)]
    if len({one.value for one in found}) != 1 or not (opening or closing) or _TURNS.search(text[rest:]):
        return []
    return found


def _opening(text: str, start: int, sentence: str, labels: Mapping[str, int]) -> float | str | None:
    """Return what the first sentence states, where it is the answer and its reason follows."""
    said = statement(sentence, labels, opens=True)
    predicate = _PREDICATE.search(sentence) if isinstance(said, float | int) else None
    if predicate and not _BARE.isdisjoint(map(str.casefold, labels)):
        agrees = bool(predicate["good"]) is not bool(predicate["not"])
        return said if agrees == (said == 1) else "open"
    return said
