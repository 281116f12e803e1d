"""What words say: a label with its reason behind it, a sentence that states the verdict, a score that is given."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from deep.prompt_pool.reader._words import (
    LONGEST_VALUE,
    compiled,
    normalise_label,
    number_of,
    one_of,
    read_label,
    read_score,
)

LONGEST_REMARK = 1000
WINDOW = 1500
"""Characters at either end of a reply in which a statement is looked for."""

STOP_TOKEN = re.compile(
    r"<\|start_header_id\|>[a-z]{1,20}<\|end_header_id\|>|<\|im_start\|>(?:assistant|user)?[ \t\n]*(?=\Z|</s>|<\|)"
    r"|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|</?(?:s|eos|bos|pad|end|assistant)>"
    r"|<(?:end|start)_of_(?:turn|utterance)>|<turn\|>|<unused\d{1,3}>|<0x[0-9a-f]{2}>|\[/?INST\]"
    r"|\[(?:EOS|DONE|END|STOP|end of text)\]"
    r"|</?(?:b|strong|p|em|i|div|span|br ?/?|code|answer|output|response|result|reply|final_answer)>",
    re.IGNORECASE,
)

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|texttt|mathrm|mathbf|boxed|fbox|emph)\s*\{([^{}]*)\}")
_RULE = re.compile(r"^[ \t]*(?:={3,}|~{3,}|-{3,})[ \t]*(?:\n|\Z)", re.MULTILINE)
_POLITE = re.compile(r"(?:\u3067\u3059|\u3067\u3042\u308b|\uc785\ub2c8\ub2e4|\uc774\ub2e4)[.\s]*\Z")
_POINTER = re.compile(r"(?:[=-]+>|[\u2190-\u21ff\u2794-\u27be])\s*")
_LATEX = re.compile(r"\\[()\[\]]|\$|\\(?=[ _])")
_FOR_SIGN = "\u2705\u2714\u2713\u2611\U0001f44d\U0001f7e2"
_AGAINST_SIGN = "\u274c\u2716\u2717\u2718\U0001f6ab\u26d4\U0001f44e\U0001f534"
_SIGNS = re.compile(f"[{_FOR_SIGN}{_AGAINST_SIGN}]\ufe0f?")
_OPEN = r"[\s*_`#\"'\u2018\u2019\u201c\u201d(\[{<]*"
_CLOSE = r"[*_`\"'\u2018\u2019\u201c\u201d)\]}>]*"
_GAP = r"[\s*_`\"'\u2018\u2019\u201c\u201d\u2010-\u2015-]*"
_FRAME = re.compile(
    r"(?:(?:so|therefore|thus|hence|overall|consequently|accordingly|as a result|in (?:conclusion|summary|short"
    r"|sum))\b[,:]? )?"
    r"(?:(?:based on|given|considering|in light of) [^,.\n]{1,80}, )?(?:it follows that )?"
    r"(?:(?:final )?(?:verdict|answer|label|conclusion) ?[:=-] ?)?"
    r"(?:(?:i|we) (?:conclude|find|judge|decide|determine) that |i would say that "
    r"|i (?:would )?(?:answer|choose|vote):? )?"
    r"(?:(?:the|this|my|our|that) (?:(?:whole|entire|given|final|overall) )?"
    r"(?:claim|statement|summary|sentence|assertion|hypothesis|text|verdict|answer|label|conclusion|judge?ment)"
    r" (?:is|are|was)(?: (?:therefore|thus|hence|clearly|fully|completely|entirely|directly|indeed|deemed|considered"
    r"|rated))*"
    r"[:,]? )?",
    re.IGNORECASE,
)
_DELIMITER = re.compile(
    r"\s*[,.;:!]+(?:(?=[\"'*_)]*\s)[\"'*_)]*\s*|$)|\s*\n\s*|\s+[-\u2010-\u2015]+>?\s+|\s*[\u2014\u2013]\s*|\s*[(\[]"
    r"|\s+(?=(?:because|since|as|due|given|by|per|according|in (?:line|accordance)|from)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LabelReading:
    """A label that was read: what it stands for, the words from it on, and how long the label itself is.

    Parameters
    ----------
    value : float
        A polarity, or a score scaled to [0, 1].
    said : str
        What the judge wrote from the label on.
    core : str
        What the judge wrote up to the end of the label.
    remark : str
        What stands behind the label as its reason.
    """

    value: float
    said: str
    core: str
    remark: str = ""


def read_value(text: str, labels: Mapping[str, float], scale: tuple[float, float] | None) -> LabelReading | None:
    """Return the label or the score that a text gives as its answer; None where it gives none or is not clear.

    Examples
    --------
    >>> from deep.prompt_pool.reader._sayings import read_value
    >>> labels = {"SUPPORTED": 1, "NOT SUPPORTED": 0}
    >>> [read_value(text, labels, None) is None for text in ("The claim is SUPPORTED.</s>", "SUPPORTED, in part")]
    [False, True]
    """
    if len(text.strip()) > LONGEST_VALUE + LONGEST_REMARK:
        return None
    plain = _plain(text)
    if scale and (not labels or (number := _score(plain, scale))):
        return number if labels else _score(plain, scale)
    unsigned = _SIGNS.sub("", plain)
    polarity = read_label(unsigned, labels)
    found = None if polarity is None else LabelReading(polarity, unsigned, unsigned)
    found = found or _label_and_remark(unsigned, labels)
    return found if found and _signs_agree(plain, found.value) else None


def _plain(text: str) -> str:
    """Return a text without stop tokens, LaTeX commands and invisible characters, its full-width signs made plain."""
    visible = _RULE.sub(" ", STOP_TOKEN.sub(" ", text))
    if not visible.isascii():
        folded = unicodedata.normalize("NFKC", visible)
        visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    for _ in range(3):
        visible = _WRAPPED.sub(r"\1", visible)
    plain = _POLITE.sub("", _LATEX.sub("", visible.replace("\u3002", ". ")).strip(" \t\n\r|"))
    return _POINTER.sub("", plain, count=1) if _POINTER.match(plain) else plain


def _signs_agree(text: str, value: float) -> bool:
    """Tell whether the ticks and crosses in a text say the same as its label."""
    wrong = {1: _AGAINST_SIGN, 0: _FOR_SIGN}.get(int(value), _FOR_SIGN + _AGAINST_SIGN)
    return not any(sign in text for sign in wrong)


def _label_and_remark(text: str, labels: Mapping[str, float]) -> LabelReading | None:
    start = re.match(_OPEN, text)
    begin = start.end() if start else 0
    frame = _FRAME.match(text, begin)
    for at in [begin] if frame is None else [frame.end(), begin]:
        for label, polarity in _longest_first(labels):
            match = _pattern(label).match(text, at)
            if match:
                return _with_remark(text, match, polarity, labels)
    return None


def _longest_first(labels: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    yield from sorted(labels.items(), key=lambda item: -len(item[0]))


def _pattern(label: str) -> re.Pattern[str]:
    """Return the pattern of a label as a judge may write it: its words, whatever stands between them."""
    words = _GAP.join(map(re.escape, normalise_label(label).split()))
    return re.compile(rf"{_OPEN}(?P<label>{words})(?!\w)", re.IGNORECASE)


def _with_remark(text: str, match: re.Match[str], polarity: float, labels: Mapping[str, float]) -> LabelReading | None:
    closed = re.compile(_CLOSE).match(text, match.end())
    end = closed.end() if closed else match.end()
    reading = LabelReading(polarity, text[match.start("label") :], text[: match.end()])
    if not text[end:].strip(" \n\t.,;:!*_`\"')]}"):
        return reading
    delimiter = _DELIMITER.match(text, end)
    if delimiter is None:
        return None
    remark = text[delimiter.end() :].strip(" \n\t*_`#>-")
    if match["label"].casefold() == "no" and delimiter[0].startswith(".") and remark[:1].isdigit():
        return None  # "No. 5" is a number
    others = [label for label, other in labels.items() if other != polarity]
    return replace(reading, remark=remark) if explains(remark, polarity, others) else None


_HEDGED_SCORE = re.compile(
    r"\d+ ?(?:/|out of|of|stars?\b|points?\b|%)|^\W*(?:or|to|and|maybe|about|no|\d+)\b|[?]", re.IGNORECASE
)


def _score(text: str, scale: tuple[float, float]) -> LabelReading | None:
    """Return the score that a text is, or begins with where its reason stands behind it."""
    number = read_score(text, *scale)
    if number is not None:
        return LabelReading(number, text, text)
    for cut in re.finditer(r"(?:[,.;:!]|\s[-\u2010-\u2015])?(?=\s)|\s*(?=[(\[])|(?=\s*[\u2013\u2014]\s)", text[:60]):
        number = read_score(text[: cut.start()], *scale)
        remark = text[cut.end() :].strip(" \n\t*_`#>-\u2013\u2014(")
        delimited = cut[0].strip() or re.match(
            r"\s*[(\[\n\u2013\u2014]|\s+(?:because|since|as|due|given|for|in terms of)\b", text[cut.end() :]
        )
        if number is not None and delimited and not _HEDGED_SCORE.search(remark) and explains(remark, -1, ()):
            return LabelReading(number, text, text[: cut.start()], remark)
    return None


_UNSURE = re.compile(rf"[?\u00bf]|\b(?:{one_of('doubts')})\b|{one_of('doubts_unspaced')}", re.IGNORECASE)
_LIMITS = compiled("", "limits", r"\b")
_AGAINST = compiled(r"\b", "against", r"\b|n't\b")
_NO_FAULT = re.compile(
    r"\b(?:no|nothing|none|without(?: any)?|zero|(?:do|does|did|is|are|was|were)(?: not|n't))(?: \w+){0,3}? "
    rf"(?:{one_of('faults')})(?:,? (?:or|and|nor) (?:{one_of('faults')}))*",
    re.IGNORECASE,
)
"""That no contradiction was found speaks for the claim."""
_AGREES = compiled(r"(?<!not )(?<!n't )\b", "agrees", r"\b")
_FOR = compiled(r"[\"'\u201c\u2018(\[]*", "speaks_for", r"\b")
_FAREWELL = compiled(r"(?:please )?", "farewell", r"[^\n]*\Z")
_FINAL = re.compile(r"\W*(?:this is )?(?:my |the )?final(?: (?:answer|verdict))?\W*", re.IGNORECASE)
_REMARK_SENTENCE = re.compile(r"(?<=[.!;\n])\s+")


def explains(remark: str, polarity: float, others: Iterable[str]) -> bool:
    """Tell whether a remark behind a verdict leaves the verdict as it is.

    A remark that doubts, limits or contradicts the verdict does not; neither does one that cannot be followed.

    Parameters
    ----------
    remark : str
        What stands behind the verdict, without the sign between the two.
    polarity : {1, 0, -1}
        Of the verdict.
    others : iterable of str
        The labels of any other polarity.

    Examples
    --------
    >>> from deep.prompt_pool.reader._sayings import explains
    >>> explains("the source says 14", 0, ["SUPPORTED"]), explains("but the date is off", 1, ["NOT SUPPORTED"])
    (True, False)
    """
    said = _FAREWELL.sub("", remark.replace("\u2019", "'")).strip()
    if not said.strip(" .)]}*_`") or _FINAL.fullmatch(said):
        return True
    if len(said) > LONGEST_REMARK or _UNSURE.search(said) or _LIMITS.match(said.lstrip(" \"'(*_")):
        return False
    if polarity == 1:
        cleared = _NO_FAULT.sub(" ", said)
        return bool(_FOR.match(said)) and not (_AGAINST.search(cleared) or _names(cleared, others, re.IGNORECASE))
    return not _names(said, others, 0) and not (polarity == 0 and _turns_round(said, others))


def _names(text: str, labels: Iterable[str], flags: int) -> bool:
    """Tell whether a text holds one of some labels that no "not" stands before."""
    return any(re.search(rf"(?<![\w-])(?<!not )(?<!NOT ){re.escape(label)}(?!\w)", text, flags) for label in labels)


def _turns_round(said: str, others: Iterable[str]) -> bool:
    """Tell whether the last sentence of a remark behind a negative verdict, or all of it, agrees with the claim."""
    last = [sentence for sentence in _REMARK_SENTENCE.split(said) if sentence.strip()][-1:]
    return any(
        (_AGREES.search(text) or _names(text, others, re.IGNORECASE)) and not _AGAINST.search(text)
        for text in [*last, said]
    )


_WORD = r"[\w'\u2019-]+"
_SIGNS_BEHIND = r"[\s,:*_\"'\u2018\u201c`(\[]*"
_SENTENCE = re.compile(r"(?:[^.!?\u3002\uff01\uff1f\n]|[.](?=\S))+[.!?\u3002\uff01\uff1f]*[\"'\u201d\u2019)*_`]*")
_LEADING = re.compile(r"[\s>#*_`\"'\u201c\u2018\xab\u3008-\u3011|\\({\[-]*")
_ITEM = re.compile(r"[\s{>#*_`\"'\u201c\u2018|\\-]*(?:\(?(?:\d{1,2}|[a-e])[.):][\s*_]*)?")
_NAME = (
    rf"(?P<name>(?:final )?(?:{one_of('name_of_answer')}|{one_of('named')}))(?: ?\([^()\n]{{1,60}}\))?"
    r"(?=[*_ ]*[:\uff1a=\u2010-\u2015])"
)
_LEAD = compiled(rf"(?:{_NAME}|", "leads", r")[\s,:\uff1a\uff0c\u3001*_-]+")
_SUBJECT = compiled(
    rf"(?P<subject>(?:{_WORD}[ \t]+){{0,8}}?)(?:{_WORD}[*_]*[ \t]+)?(?P<verb>", "verbs", rf"\b{_SIGNS_BEHIND})"
)
_LINK = re.compile(
    rf"(?:(?P<not>{one_of('negations')})\b|(?:{one_of('fillers')})\b|[*_]){_SIGNS_BEHIND}", re.IGNORECASE
)
_OPEN_WORDS = compiled(rf"[?\uff1f]|{one_of('open_unspaced')}|\b", "open_words", r"\b")
_ASKS = re.compile(r"[?\uff1f\u5417][\s\"'*_)\u201d\u3002]*$")
_OPEN_END = compiled(r"\s*(?:[,(]\s*)?", "open_ends", r"\b|\s*[?\uff1f]")
_TURNS = compiled(r"\b", "turns", r"\b")
_REPORTED = compiled(r"[\"\u201c]|\b", "reported", r"\b")
_TAIL = compiled(
    r"[\s*_`\"'\u2019\u201d)}\]\xbb\u3009-\u3011]*(?:$|[.,;:!\u3002\uff0c\uff1a\uff01\n(]|[\u2010-\u2015-]|",
    "behind_label",
    r"\b)",
)
_PREFERRED = compiled(
    r"[\s*_`\"')\]]*(?:is|was|=)\s+(?:(?P<not>not)\s+)?(?:(?:clearly|the|a|overall|therefore|slightly|much|far)\s+)*",
    "preferred",
    r"\b",
)
_BARE = frozenset(one_of("bare").split("|"))
_PREDICATE = re.compile(
    rf"\b(?:{one_of('spoken_of')}|answer) (?:is|was)(?: (?P<not>not|n't))?(?: \w+ly)? "
    r"(?:(?P<good>correct|supported|consistent|accurate|true|faithful|right)"
    r"|(?:incorrect|inconsistent|unsupported|false|wrong|inaccurate))\b",
    re.IGNORECASE,
)
_SPOKEN_OF = compiled(r"\b", "spoken_of", r"\b")
_RIGHT = re.compile(r"\bnot (?:entirely |fully )?$", re.IGNORECASE)
_IS = re.compile(r"\b(that|it|there)['\u2019]s\b", re.IGNORECASE)
_FOUND_NONE = re.compile(r"\bc(?:ould|an)(?: ?not|n['\u2019]t) (?=find|see|detect|identify)", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENIES = re.compile(r"\b(?:no|ne|n|non|nicht|не)[\s'\u2019]*$", re.IGNORECASE)
_SO = re.compile(r"[,;:\u2014] (?:and )?(?P<so>(?:so|therefore|thus|hence|consequently|which means|meaning)\b)", re.I)


class Stated(NamedTuple):
    """A statement: its value, and where it stands."""

    value: float
    start: int
    end: int


class _Vocabulary(NamedTuple):
    """Labels as they are compared, the words that negate them with them, and the pattern that finds one."""

    labels: Mapping[str, float]
    pattern: re.Pattern[str]

    def value(self, said: str) -> float:
        """Return the value of a label that was found."""
        plain = normalise_label(re.sub(r"[()]", " ", said))
        forms = (normalise_label(said), plain, plain.removesuffix("s"), plain.removesuffix("es"))
        return next(self.labels[form] for form in forms if form in self.labels)


@lru_cache(maxsize=64)
def _vocabulary(labels: tuple[tuple[str, float], ...]) -> _Vocabulary:
    """Return the labels and their negations: without "no" and "a", and with "un-" and "in-" before one word."""
    known = {normalise_label(label): polarity for label, polarity in labels}
    for label, polarity in [*known.items()]:
        core = re.sub(r"^(?:an?|no|not|any) ", "", label)
        if core != label and polarity in (0, 1):
            known.setdefault(core, 1 - polarity if label.startswith("no") else polarity)
    for label, polarity in [*known.items()]:
        if polarity in (0, 1) and label.isascii() and label.isalpha() and label not in _BARE and len(label) > 3:
            for prefix in ("un", "in", "non", "non ", "dis"):
                known.setdefault(prefix + label, 1 - polarity)
    gap = r"[\s*_`\"'\u2010-\u2015()-]+"
    longest_first = sorted(known, key=lambda label: (-len(label), label))
    words = {label: re.escape(label).replace(r"\ ", gap) for label in longest_first}
    spaced = (
        word if _UNSPACED.search(label) else rf"(?<![^\W_]){word}(?:s|es)?(?![^\W_])" for label, word in words.items()
    )
    return _Vocabulary(known, re.compile("|".join(spaced), re.IGNORECASE))


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


def stated(text: str, labels: Mapping[str, float]) -> list[Stated]:
    """Return the statements of a reply's beginning and end, if they agree; empty where it makes none.

    Examples
    --------
    >>> from deep.prompt_pool.reader._sayings import stated
    >>> labels = {"consistent": 1, "inconsistent": 0}
    >>> [one.value for one in stated("All was checked. So the summary is not inconsistent with it.", labels)]
    [1]
    """
    rest = max(0, len(text) - WINDOW)
    opening, closing = [*_sentences(text[:WINDOW], 0)][:1], [*_sentences(text[rest:], rest)][-3:]
    found = []
    for i, (start, sentence) in enumerate([*opening, *closing]):
        starts = not start or "\n" in text[start - 1 : start + 1]
        plain = _FOUND_NONE.sub("did not ", _IS.sub(r"\1 is", _SIGNS.sub("", _plain(sentence))))
        said = _opening(plain, labels) if i == 0 else _statement(plain, labels, starts=starts)
        said = said if not isinstance(said, int | float) or _signs_agree(sentence, said) else "open"
        if said == "open" and i in (0, len(closing)):
            return []
        if isinstance(said, int | float):
            found.append(Stated(said, start, start + len(sentence)))
    last_line = text.rstrip().rfind("\n") + 1
    placed = [one for one in found if one.start in (opening[0][0], closing[-1][0]) or one.start >= last_line]
    return found if placed and len({one.value for one in found}) == 1 and not _TURNS.search(text[rest:]) else []


def said_in(text: str, labels: Mapping[str, float]) -> set[float]:
    """Return the values of the first and the last sentences of a reply, each for itself."""
    rest = max(0, len(text) - WINDOW)
    sentences = [*[*_sentences(text[:WINDOW], 0)][:1], *[*_sentences(text[rest:], rest)][-3:]]
    said = (_statement(sentence, labels, starts=True) for _, sentence in sentences if labels)
    return {value for value in said if isinstance(value, int | float)}


def _opening(sentence: str, labels: Mapping[str, float]) -> float | str | None:
    """Return the value of a reply's first sentence; ``open`` where its words behind "yes" or "no" say the other."""
    said = _statement(sentence, labels, opens=True)
    predicate = _PREDICATE.search(sentence) if isinstance(said, int | float) else None
    if predicate and not _BARE.isdisjoint(map(str.casefold, labels)):
        agrees = bool(predicate["good"]) is not bool(predicate["not"])
        return said if agrees == (said == 1) else "open"
    return said


def _statement(
    sentence: str, labels: Mapping[str, float], *, opens: bool = False, starts: bool = True
) -> float | str | None:
    """Return the value of a sentence; ``open`` where it leaves the verdict open, None where it states none."""
    known = _vocabulary(tuple(labels.items()))
    at = _end(_LEADING, sentence, 0)
    at = at if known.pattern.match(sentence, at) else _end(_ITEM, sentence, 0)
    while not known.pattern.match(sentence, at) and (lead := _LEAD.match(sentence, at)):
        if lead["name"] and not (starts or lead["name"].casefold().startswith("final")):
            return None
        at = _end(_ITEM, sentence, lead.end())
    first = known.pattern.search(sentence, at)
    if first is None:
        return None
    value = _framed(sentence, at, first, known)
    if value is None:
        ends = [match.start("so") for match in _SO.finditer(sentence, at)]
        return _statement(sentence[ends[-1] :], labels, opens=opens, starts=False) if ends else None
    end, preferred = first.end(), _PREFERRED.match(sentence, first.end())
    if (
        value == "open"
        or _ASKS.search(sentence)
        or _OPEN_WORDS.search(sentence, at, end)
        or _OPEN_END.match(sentence, end)
    ):
        return "open"
    others = {known.value(match[0]) for match in known.pattern.finditer(sentence, end)} - {value}
    if opens and others and not preferred:
        return value if normalise_label(first[0]) in _BARE else None
    return "open" if others and not preferred else value


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _framed(sentence: str, at: int, first: re.Match[str], known: _Vocabulary) -> float | str | None:
    """Return the value of the first label where it is what the sentence says of its subject."""
    value, bare = known.value(first[0]), normalise_label(first[0]) in _BARE
    preferred = _PREFERRED.match(sentence, first.end())
    if preferred and first.start() == at:
        return 1 - value if preferred["not"] and value in (0, 1) else value
    before = sentence[at : first.start()]
    lettered = len(first[0]) == 1 and sentence[first.end() :].startswith(")")
    if not _UNSPACED.search(first[0]) and not lettered and not _TAIL.match(sentence, first.end()):
        return None
    if not _LEADING.sub("", before):
        listed = sentence[first.end() :].lstrip("*_`\"')").startswith(",") and not (bare or first[0].isupper())
        return None if listed else value  # "Output (b), on the other hand, ..." only names what it speaks of
    if _UNSPACED.search(first[0]):
        denied = before.rstrip().endswith(("不", "并不", "未"))
        return None if len(before) > 40 else "open" if denied and value not in (0, 1) else abs(value - denied)
    named = len(first[0]) > 1 and first[0].isupper()
    return _predicated(before, value, bare and not named and first[0].casefold() not in ("true", "false"))


def _predicated(before: str, value: float, bare: bool) -> float | str | None:
    """Return the value of a label behind a subject and a verb; `bare` where only an answer can be it."""
    subject = _SUBJECT.match(before)
    if subject is None or _REPORTED.search(before, 0, subject.start("verb")):
        return None
    said, rest = before[: subject.start("verb")], before[subject.start("verb") :]
    if _DENIES.search(said):
        return "open"
    if bare and not re.search(one_of("name_of_answer"), said, re.IGNORECASE):
        return None
    negations = len(re.findall(r"n['\u2019]t\b", rest)) + bool(re.match(r"(?:no|nothing|none|neither)\b", said, re.I))
    at = subject.end("verb") - subject.start("verb")
    while at < len(rest):
        link = _LINK.match(rest, at)
        if link is None or link.end() == at:
            return None
        negations += bool(link["not"])
        at = link.end()
    if negations > 1 or (
        negations and (bare or value not in (0, 1) or not (_SPOKEN_OF.search(said) or _RIGHT.search(rest)))
    ):
        return "open"
    return abs(value - negations)


_NUMBER = r"(?P<n>\d+(?:\.\d+)?|zero|one|two|three|four|five|six|seven|eight|nine|ten)"
_RATED = (
    re.compile(
        r"\b(?:scor\w*|rat(?:e|ed|ing|es)|grade\w*|probability|likelihood)\b(?:[^\d.\n]|[.](?=\S)){0,60}?(?<![-\d.])\b"
        rf"{_NUMBER}\b(?!\s*(?:to|-|\u2013|or)\s*\d)(?:\s*(?:/|out of)\s*(?P<top>\d+))?",
        re.I,
    ),
    re.compile(rf"(?<![-\d.])\b{_NUMBER}\s*(?:/|out of)\s*(?P<top>\d+|five|ten)\b", re.I),
    re.compile(rf"(?<![-\d.])\b{_NUMBER}[ -](?:stars?|points?)\b", re.I),
    re.compile(
        rf"\b(?:giv(?:e|es|ing|en)|assign\w*|award\w*|deserves?|earn\w*)\s(?:\w+\s){{0,4}}?an?\s{_NUMBER}(?=[\s*_]*[.,;!\n]|\s*$)",
        re.I,
    ),
    re.compile(
        rf"(?:\A|\n)[\s*_-]{{0,9}}(?!VERDICT|Verdict)[A-Z]\w+\s?:[\s*_]{{0,5}}{_NUMBER}[\s*_.]{{0,5}}(?:\Z|\n\n)"
    ),
    re.compile(rf"(?<=[.!\n])[\s*_`]+{_NUMBER}[\s*_`.]*\Z", re.I),
)
_BEGIN = re.compile(
    rf"[*_`\"'(\[]{{0,9}}(?:(?:score|rating)\b[\s:*_`]{{0,9}})?{_NUMBER}"
    r"(?P<unit>\s{0,3}(?:/|out of)\s{0,3}(?P<top>\d+)|[ -]stars?|\s{0,3}points?|%)?"
    r"(?P<end>[*_`\"')\]]{0,9}(?:\s*\Z|[.,;:!]?\s{0,9}\n|[.:;!,](?=\s)|\s?\u2014|\s-\s|\s?\())?",
    re.I,
)
_RANGE = {
    True: re.compile(r"\s?(?:-|\u2013|to|or)\s?\d", re.I),
    False: re.compile(r"\s?(?:-|\u2013|to|or|,)\s?\d|\.\s+\S", re.I),
}
_SCALE_TALK = re.compile(
    r"\b(?:scale|range)\s+(?:of|from|between)?\s*(?:\d+\s*(?:to|-|and)\s*)?$|\b(?:with|where)\s+$|\d\s(?:or|to)\s(?:an?\s)?$",
    re.I,
)


def rated(text: str, scale: tuple[float, float], *, first: bool) -> Stated | None:
    """Return the one score that a reply gives: at its very beginning, or wherever it says that it rates."""
    low, high = scale
    begin = _BEGIN.match(_plain(text[:200]).lstrip())
    if (
        begin
        and (first or begin["unit"] or begin["end"] is not None)
        and not _RANGE[first].match(begin.string, begin.end("n"))
    ):
        value = _rating(begin, low, high)
        if value is not None and first:
            return Stated((value - low) / (high - low), 0, len(text) - len(text.lstrip()) + begin.end("n"))
    else:
        begin, value = None, None
    said = {value: (begin.start("n"), begin.end("n"))} if begin and value is not None else {}
    parts = {0: text} if len(text) <= 2 * WINDOW else {0: text[:WINDOW], len(text) - WINDOW: text[-WINDOW:]}
    for base, part in parts.items():
        for match in (match for where in _RATED for match in where.finditer(part)):
            number = _rating(match, low, high)
            if number is not None and not _SCALE_TALK.search(part[max(0, match.start("n") - 40) : match.start("n")]):
                said[number] = base + match.start(), base + match.end()
        if _TURNS.search(part):
            return None
    if len(said) != 1:
        return None
    ((number, (start, end)),) = said.items()
    return Stated((number - low) / (high - low), start, end)


def _rating(match: re.Match[str], low: float, high: float) -> float | None:
    number, top = number_of(match["n"]), match.groupdict().get("top")
    if number is None or not low <= number <= high or (top and number_of(top) != high):
        return None
    return number
