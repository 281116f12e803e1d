"""The words of answers, and what they say: a label with its reason behind it, a statement of the verdict, a score.

A sentence is read by the labels in it, each by itself: its value, turned round by each negation in its clause.
It counts where the sentence is about the claim, the label is its predicate, and nothing in the clause leaves it open.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice, pairwise
from typing import NamedTuple

from deep.prompt_pool._locate import visible

# The most characters of an answer by itself.
LONGEST_VALUE = 200

_DECORATION = re.compile(r"[\s*_`#\"'\u2018\u2019\u201c\u201d\xab\xbb\u3008-\u3011()\[\]{}\u2010-\u2015-]+")


@lru_cache(maxsize=1024)
def normalise_label(text: str) -> str:
    r"""Return a label without case, markdown, quotes, hyphens, repeated white space and closing punctuation.

    A strikethrough, a question mark and any sign that could turn the meaning stay, so that they match no label.

    Examples
    --------
    >>> from deep.prompt_pool._sayings import normalise_label
    >>> normalise_label("NOT\n**SUPPORTED**."), normalise_label("not-supported"), normalise_label("supported?")
    ('not supported', 'not supported', 'supported?')
    """
    return _DECORATION.sub(" ", visible(text).casefold()).strip(" .,;:!")


def read_label(value: str, labels: Mapping[str, float]) -> float | None:
    """Return the polarity of the label that `value` is, or None.

    The whole value must be one label, so none is found inside a longer one or inside a sentence.
    """
    if len(value.strip()) > LONGEST_VALUE:
        return None
    plain = normalise_label(value)
    return next((polarity for label, polarity in labels.items() if normalise_label(label) == plain), None)


# The words and patterns of `words.toml` in several languages, as tables.
_LEXICON = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_AROUND = _LEXICON["around"]
_UNITS, _TENS = (_LEXICON["numbers"][name].split() for name in ("units", "tens"))
_NUMBERS = {word: i for i, word in enumerate(_UNITS)} | {"hundred": 100, "a hundred": 100, "one hundred": 100}
_NUMBERS |= {ten: 10 * i for i, ten in enumerate(_TENS, start=2)}
_NUMBERS |= {f"{ten} {_UNITS[j]}": 10 * i + j for i, ten in enumerate(_TENS, start=2) for j in range(1, 10)}


@cache
def word_pattern(name: str) -> str:
    """Return the alternatives of a list of `words.toml` as a pattern, with the lists that it refers to."""
    alternatives = {**{key: value.split("|") for key, value in _AROUND.items()}, **_LEXICON["alternatives"]}
    names = [word for words in _LEXICON["names"].values() for word in words.split("|")]
    # A pattern takes the first alternative that fits, so the longest names come first.
    alternatives["names"] = sorted(names, key=len, reverse=True)
    alternatives["numbers"] = [word.replace(" ", "[ -]") for word in sorted(_NUMBERS, key=len, reverse=True)]
    return "|".join(_expand(part.replace("'", "['\u2019]")) for part in alternatives[name])


def _expand(text: str) -> str:
    """Return a pattern with the lists and the patterns in braces put in."""
    patterns = _LEXICON["patterns"]
    parts = {*_AROUND, *_LEXICON["alternatives"], "names", "numbers"}
    put = re.sub(r"\{([a-z_]+)\}", lambda at: word_pattern(at[1]) if at[1] in parts else _expand(patterns[at[1]]), text)
    return str(put)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `words.toml`, whatever the case."""
    return re.compile(_expand(_LEXICON["patterns"][name]), re.IGNORECASE)


def number_of(text: str) -> float | None:
    """Return the number that a word, its figures or a row of stars are."""
    word = text.casefold().replace("-", " ")
    if word in _NUMBERS:
        return float(_NUMBERS[word])
    if pattern("stars").fullmatch(text):
        return float(len(pattern("star").findall(text)))
    return float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text, re.ASCII) else None


_BARE_WORDS = frozenset(word_pattern("bare").split("|"))


class Cue(NamedTuple):
    """A label, or a word of its family, in a sentence.

    `named` is whether it names an answer, as yes and B do; `whole` whether it is the label itself; `turns` whether its
    negation is the other vote; `acts` whether it may be a verb, and `wants` whether it is one that wants an object.
    """

    value: float
    start: int
    end: int
    named: bool
    whole: bool
    turns: bool
    acts: bool
    wants: bool


class Vocabulary(NamedTuple):
    """The words of some labels in their forms, each with its value, what finds any, and whether they are verbs."""

    words: Sequence[tuple[str, re.Pattern[str], float]]
    found: re.Pattern[str]
    verbs: bool

    def cues(self, text: str, at: int) -> Iterator[Cue]:
        """Yield the words of the labels, turned round by a prefix (un-, in-) or a suffix (-free)."""
        for match in self.found.finditer(text, at):
            word_here = match["core"] or match["unspaced"]
            label, value = next((word, value) for word, form, value in self.words if form.fullmatch(word_here))
            others = [other for _, form, other in self.words if not form.fullmatch(label)]
            is_name, turned = _names_answer(label), bool(match["un"] or match["free"] or match["not"])
            turns = value in (0, 1) and all(other in ((0, 1, -1) if value == 1 else (1, -1)) for other in others)
            if not turned or (turns and not is_name):
                plain, bare = (re.sub(r"[\W_]", "", normalise_label(text)) for text in (word_here, label))
                whole = turned or plain in (bare, bare + "s", bare[:-1])
                verbal = self.verbs if whole else pattern("of_verbs").search(label) is not None
                acts = verbal and not pattern("no_verb").search(word_here)
                wants = label.endswith("ed") and word_here.casefold().endswith("s")
                yield Cue(1 - value if turned else value, *match.span(), is_name, whole, turns, acts, wants)

    def blames(self, name: str) -> bool:
        """Tell whether a name is that of a fault, under which yes or true is no label of 1."""
        affirmed = any(value == 1 and label in ("yes", "true") for label, _, value in self.words)
        return affirmed and pattern("fault").search(name.replace("_", " ")) is not None


def _names_answer(label: str) -> bool:
    """Tell whether a label says nothing by itself: yes, B, Response 1."""
    spelled = re.search(r"(?:^|\W)\w$|\d$", label) is not None
    return label in _BARE_WORDS or (spelled and not pattern("unspaced").search(label))


@lru_cache(maxsize=64)
def vocabulary(labels: tuple[tuple[str, float], ...]) -> Vocabulary:
    """Return the words of labels; one that only denies another (not supported, no error) is left to its core."""
    value_of = {normalise_label(pattern("between_words").sub(" ", label)): value for label, value in labels}
    for label, value in [*value_of.items()]:
        core = re.sub(r"^(?:an?|no|not|any|un|in|non)(?: |(?<=un|in)(?=\w{4}))", "", label)
        denies = not label.startswith(("a ", "an ", "any "))
        if value in (0, 1) and core != label and (value_of.get(core) == 1 - value or not (denies and " " in core)):
            value_of.setdefault(core, 1 - value if denies else value)
            del value_of[label]
    # "not supported" is tried before "supported", which it holds.
    longest_first = sorted(value_of, key=lambda label: (-len(label), label))
    words = [(label, re.compile(_spelled(label), re.IGNORECASE), value_of[label]) for label in longest_first]
    spaced, unspaced = (
        "|".join(form.pattern for label, form, _ in words if bool(pattern("unspaced").search(label)) == kind) or "(?!)"
        for kind in (False, True)
    )
    result = (
        rf"(?<![^\W_])(?!(?-i:a [A-E]\b))(?P<un>(?:un|in|non[- ]?|dis|ir|im|il)(?=\w{{4}}))??(?P<core>{spaced})"
        rf"(?P<free>[- ]free)?(?!-?[^\W_])|(?P<not>[\u4e0d\u672a\u975e\u65e0\u7121])?(?P<unspaced>{unspaced})"
    )
    verbs = {value for label, value in value_of.items() if label.endswith("s")} >= {0, 1}
    return Vocabulary(words, re.compile(result, re.IGNORECASE), verbs)


def _spelled(label: str) -> str:
    """Return the pattern of the forms of a label's words."""
    if pattern("unspaced").search(label) or _names_answer(label):
        return r"[\s*_`\"'\u2010-\u2015()-]*".join(map(re.escape, label.split())) + str(_LEXICON["same"].get(label, ""))
    return r"[\s*_`\"'\u2010-\u2015-]*(?:(?:that|which) (?:is|are) )?".join(map(_family, label.split()))


def _family(word: str) -> str:
    for end, forms in _LEXICON["families"] if len(word) > 3 else ():
        if re.search(f"(?:{end})$", word):
            return re.escape(re.sub(f"(?:{end})$", "", word, count=1)) + str(forms)
    return re.escape(word)


# The most characters of what stands behind an answer, as its reason.
LONGEST_REMARK = 1000
# A sentence with so many labels states none, and would take its length squared to read.
MAX_CUES = 25

# The characters at either end of a reply in which a statement is looked for.
END_CHARS = 1500

STOP_TOKEN = pattern("stop_token")

# The patterns of `words.toml` by which a reply gives a score: each is named ``given_NAME`` there.
_GIVEN_PATTERNS = ("unit", "name", "verb", "line", "mark", "alone", "stars", "fits", "of")


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


class Saying(NamedTuple):
    """A statement: its value, None where it leaves the verdict open, and where it stands."""

    value: float | None
    start: int
    end: int


def read_value(
    text: str, labels: Mapping[str, float], scale: tuple[float, float] | None, *, strict: bool = False
) -> LabelReading | None:
    """Return the label or the score that a text gives as its answer; None where it gives none or is not clear.

    Where it is `strict`, the label must begin the text.

    Examples
    --------
    >>> from deep.prompt_pool._sayings import read_value
    >>> labels = {"SUPPORTED": 1, "NOT SUPPORTED": 0}
    >>> [read_value(text, labels, None) is None for text in ("The claim is SUPPORTED.</s>", "SUPPORTED, in part")]
    [False, True]
    """
    if len(text.strip()) > LONGEST_VALUE + LONGEST_REMARK:
        return None
    plain = _plain(text)
    if scale and (not labels or (number := _score(plain, scale))):
        return number if labels else _score(plain, scale)
    unsigned = pattern("signs").sub("", plain)
    polarity = read_label(unsigned, labels)
    whole = None if polarity is None else LabelReading(polarity, unsigned, unsigned)
    result = whole or _label_and_remark(unsigned, labels, strict=strict)
    return result if result and _signs_agree(plain, result.value) else None


def _plain(text: str) -> str:
    """Return a text without stop tokens, LaTeX commands and invisible characters, its full-width signs made plain."""
    visible_text = pattern("glued").sub(" ", visible(pattern("rule").sub(" ", STOP_TOKEN.sub(" ", text))))
    # Bold in quotation marks in brackets: three wrappings at most are taken off.
    for _ in range(3):
        visible_text = pattern("wrapped").sub(r"\1", visible_text)
    plain = pattern("latex").sub("", visible_text.replace("\u3002", ". ")).strip(" \t\n\r|")
    return re.sub(rf"\A{pattern('pointer').pattern}", "", pattern("polite").sub("", plain))


def _signs_agree(text: str, value: float) -> bool:
    """Tell whether the ticks and crosses in a text say the same as its label."""
    return not any(pattern(sign).search(text) for sign, says in (("for_sign", 1), ("against_sign", 0)) if value != says)


def _label_and_remark(text: str, labels: Mapping[str, float], *, strict: bool) -> LabelReading | None:
    """Return the label that a text begins with, or that its first sentence states, where the rest explains it."""
    first = pattern("sentence").match(text)
    statement = _statement(first[0], labels, opens=True) if first else None
    if statement is None or statement.value is None:
        return None
    begins = not statement.start or read_label(text[: statement.end], labels) is not None
    if not begins and (strict or not pattern("about").search(text, 0, statement.end)):
        return None
    remark = text[statement.end :].lstrip(" \n\t*_`#>-.,;:!)]}'\"\u201d\u2014\u2013(")
    others = [label for label, value in labels.items() if value != statement.value]
    if not explains(remark, int(statement.value), others):
        return None
    return LabelReading(statement.value, text, text[: statement.end], remark)


def _score(text: str, scale: tuple[float, float]) -> LabelReading | None:
    """Return the score that a text is, or begins with where its reason stands behind it."""
    begin = pattern("begin").match(text)
    number = _rating(begin, *scale) if begin and begin["end"] is not None else None
    if begin is None or number is None:
        return None
    remark = text[begin.end() :].strip(" \n\t*_`#>-\u2013\u2014(.)]\"'")
    if remark and (pattern("hedged_score").search(remark) or not explains(remark, -1, ())):
        return None
    return LabelReading((number - scale[0]) / (scale[1] - scale[0]), text, text[: begin.end()], remark)


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
    >>> from deep.prompt_pool._sayings import explains
    >>> explains("the source says 14", 0, ["SUPPORTED"]), explains("but the date is off", 1, ["NOT SUPPORTED"])
    (True, False)
    """
    text = pattern("farewell").sub("", remark.replace("\u2019", "'")).strip()
    if not text.strip(" .)]}*_`") or pattern("final").fullmatch(text):
        return True
    if len(text) > LONGEST_REMARK or pattern("unsure").search(text) or pattern("limited").match(text.lstrip(" \"'(*_")):
        return False
    against = pattern("against")
    if polarity == 1:
        cleared = pattern("no_fault").sub(" ", text)
        names_other = against.search(cleared) or _names(cleared, others, re.IGNORECASE)
        return bool(pattern("speaks_for").match(text)) and not names_other
    texts = [text, *re.split(r"(?<=[.!;\n])\s+(?=\S)", text)[-1:]] if polarity == 0 else []
    agrees = [one for one in texts if pattern("agrees").search(one) or _names(one, others, re.IGNORECASE)]
    return all(map(against.search, agrees)) and not _names(text, others, 0)


def _names(text: str, labels: Iterable[str], flags: int) -> bool:
    """Tell whether a text holds one of some labels that no "not" stands before."""
    return any(re.search(rf"(?<![\w-])(?<!not )(?<!NOT ){re.escape(label)}(?!\w)", text, flags) for label in labels)


def _sentences(text: str, base: int) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text that are no quotation and no answer to a question in it, and where they begin."""
    is_answer = False
    for match in pattern("sentence").finditer(text):
        if any(map(str.isalnum, match[0])):
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            marked = (line.lstrip() or match[0].lstrip()).startswith((">", "|")) or pattern("key").search(match[0])
            marked = marked or pattern("copied_question").match(line + match[0])
            quoted = marked or line.count('"') % 2 or line.count("\u201c") > line.count("\u201d")
            asks = match[0].strip(" *_\"')")
            opens = base == match.start() == 0 and text.count("?") == 1 and not pattern("asks_else").search(asks)
            question = asks.endswith(("?", "\uff1f"))
            if not (is_answer or quoted or (question and opens)):
                yield base + match.start(), match[0]
            is_answer = question and not opens


def statements_in(text: str, labels: Mapping[str, float]) -> list[Saying]:
    """Return the statements of a reply's beginning and end, if they agree; empty where it makes none.

    Examples
    --------
    >>> from deep.prompt_pool._sayings import statements_in
    >>> labels = {"consistent": 1, "inconsistent": 0}
    >>> [one.value for one in statements_in("All was checked. So the summary is not inconsistent with it.", labels)]
    [1]
    """
    text = pattern("headed").sub(r"\1:", text)
    statements = [*_statements(text, labels)]
    opening, last = (statements[0], statements[-1]) if statements else (None, None)
    if pattern("turns").search(text[-END_CHARS:]) or (last and last.value is None):
        return []
    sure = [one for one in statements if one and one.value is not None]
    final = [one for one in sure if one != opening and pattern("concludes").search(text, one.start, one.end)][-1:]
    asks = opening and pattern("asks").search(text, opening.start, opening.end)
    if opening and opening.value is None and not asks and [last] != final:
        return []
    answers = [one for one in sure if one == opening or not final or one.start >= final[0].start]
    last_line = text.rstrip().rfind("\n") + 1
    placed = any(one in (opening, last, *final) or one.start >= last_line for one in answers)
    behind = max((one.start for one in answers), default=0)
    doubted = answers and (pattern("self_doubt").search(text, behind) or _concludes_behind(text, behind))
    return answers if placed and not doubted and len({one.value for one in answers}) == 1 else []


def _concludes_behind(text: str, at: int) -> bool:
    """Tell whether a conclusion without a fault stands behind the last readable statement: it may take that back."""
    rest = max(0, len(text) - END_CHARS)
    later = (sentence.lstrip(" \n\t*_#") for start, sentence in _sentences(text[rest:], rest) if start > at)
    return any(pattern("concludes").match(one) and not pattern("fault").search(one) for one in later)


def _statements(text: str, labels: Mapping[str, float]) -> Iterator[Saying | None]:
    """Yield the statements of the first sentence, the last three, and those that are a line or conclude."""
    rest = max(0, len(text) - END_CHARS)
    sentences = dict([*_sentences(text[:END_CHARS], 0), *_sentences(text[rest:], rest)])
    for i, (at, sentence) in enumerate(sentences.items()):
        if i == 0 or i >= len(sentences) - 3 or _has_a_line(text, at, sentence):
            yield _sentence_at(text, at, sentence, labels)


def _has_a_line(text: str, at: int, sentence: str) -> bool:
    """Tell whether a sentence is a line by itself, and short, or concludes what stands in the lines before it."""
    begins = not at or "\n" in text[max(0, at - 3) : at + 1]
    end = at + len(sentence)
    ends = len(sentence) <= LONGEST_VALUE and text[end : end + 9].lstrip(" *_")[:1] in ("", "\n")
    return begins and (ends or pattern("concludes").match(sentence.lstrip(" \n\t*_#")) is not None)


def _sentence_at(text: str, at: int, sentence: str, labels: Mapping[str, float]) -> Saying | None:
    """Return the statement of a sentence of a reply, as long as the sentence is."""
    plain = pattern("signs").sub("", _plain(sentence))
    statement = _statement(plain, labels, opens=pattern("one_line").fullmatch(text.strip()) is not None)
    if statement and statement.value is not None and not _signs_agree(sentence, statement.value):
        statement = statement._replace(value=None)
    return statement and Saying(statement.value, at, at + len(sentence))


def values_stated(text: str, labels: Mapping[str, float]) -> set[float]:
    """Return the values of what a reply states, each for itself."""
    return {one.value for one in _statements(text, labels) if one and one.value is not None} if labels else set()


def _statement(sentence: str, labels: Mapping[str, float], *, opens: bool = False) -> Saying | None:
    """Return the value of a sentence, and where its first label ends; None where it states none.

    It begins at 0 where the label begins the sentence. `opens` is whether it may begin with any name and a colon.
    """
    words = vocabulary(tuple(labels.items()))
    plain = re.sub(r"(?<=\w)_(?=\w)", " ", sentence)
    at = _begin(plain, 0, words.found)
    while not words.found.match(plain, at) and (lead := pattern("lead").match(plain, at)):
        name = lead["name"] or ""
        if any(cue.whole for cue in words.cues(name, 0)):
            return None
        at = _begin(plain, lead.end(), words.found)
    if (copy := pattern("copy").match(plain, at)) and not words.found.search(plain, at, copy.end()):
        return None
    name = pattern("any_name").match(plain, at)
    wholes = [cue.whole for cue in words.cues(name[0], 0)] if name else []
    if name and (opens or wholes) and not words.blames(name[0]) and not any(wholes):
        at = name.end() if words.found.match(plain, _end("denial", plain, name.end())) else at
    if len(cues := [*islice(words.cues(plain, at), MAX_CUES)]) == MAX_CUES:
        return None
    for one, other in pairwise(cues):
        if pattern("listed").fullmatch(plain, one.end, other.start) and _value(plain, one) != _value(plain, other):
            return Saying(None, at, one.end)
    particle = None if any(cue.named for cue in cues) else pattern("particle").match(plain, at)
    at = particle.end() if particle else at
    pairs = [(_cue_value(plain, at, cue), cue) for cue in cues if cue.start >= at]
    pairs = [(value, cue) for value, cue in pairs if value is not None]
    if not pairs:
        return None
    value, cue = pairs[0]
    clash = particle and any(own == cue.value == 1 if particle["no"] else own != cue.value == 0 for own, cue in pairs)
    if clash or isinstance(value, str) or len({own for own, _ in pairs}) > 1 or pattern("asks").search(plain):
        return Saying(None, at, cue.end)
    return Saying(value, len(pattern("counted").sub(" ", plain[at : cue.start]).strip(" *_`\"'([")), cue.end)


def _begin(sentence: str, at: int, label_pattern: re.Pattern[str]) -> int:
    """Return where a sentence begins behind its markup, and behind the sign of a list where that is no label."""
    leading = _end("leading", sentence, at)
    return leading if label_pattern.match(sentence, leading) else _end("item", sentence, at)


def _end(name: str, text: str, at: int) -> int:
    result = pattern(name).match(text, at)
    return result.end() if result else at


def _value(sentence: str, cue: Cue) -> float:
    """Return the value of a label with the "not" right before it."""
    return 1 - cue.value if pattern("not_before").search(sentence[: cue.start]) else cue.value


def _cue_value(sentence: str, at: int, cue: Cue) -> float | str | None:
    """Return the value that a sentence asserts by one of its labels; ``open`` where it is left open, or None."""
    before, behind, label = sentence[at : cue.start], sentence[cue.end :], sentence[cue.start : cue.end]
    if pattern("unspaced").search(label):
        if pattern("hedged").search(before + label + pattern("unspaced_clause").split(behind)[0]):
            return "open"
        clause = pattern("unspaced_clause").split(before)[-1]
        turned = len(pattern("unspaced_not").findall(clause)) + bool(pattern("unspaced_denied").match(behind))
        states = len(clause) <= 40 and pattern("unspaced_tail").match(behind)
        return None if not states else cue.value if not turned else 1 - cue.value if cue.turns == turned else "open"
    clause = pattern("apart").split(before)[-1]
    if pattern("passed").search(before) or pattern("reported").search(clause):
        return None
    if cue.named:
        return _name_value(sentence, before, behind, clause, cue)
    hedged = pattern("hedged").search(clause) or pattern("hedged_end").match(behind)
    if hedged or pattern("conditional").search(sentence, at):
        return "open"
    if not _predicates(sentence, before, clause, cue):
        return None
    denials = [*pattern("not").finditer(clause)]
    narrow = len(pattern("not").findall(pattern("part").split(clause)[-1]))
    others = pattern("not").search(re.sub(r"\bNOT\W+$", "", clause))
    # As in "I would not say that the answer is NO": the label is spoken of, and not given.
    names_label = label.isupper() and others and pattern("names").search(clause)
    wide = len(denials) % 2
    if wide != narrow % 2 or names_label or (wide and not cue.turns) or len(denials) > 2:
        return "open"
    wide ^= pattern("denied_behind").match(behind) is not None
    value = 1 - cue.value if wide else cue.value
    if value == 1 and pattern("only").match(behind):
        return "open"
    if cue.value == 1 and pattern("by_claim").match(behind):
        return None  # nothing follows from a source that a claim supports
    return None if value == 1 and pattern("partial").search(clause) else value


def _predicates(sentence: str, before: str, clause: str, cue: Cue) -> bool:
    """Tell whether a label is what its clause says of the claim, not an attribute, and not of a part of the claim."""
    behind = sentence[cue.end :]
    tail = pattern("tail").match(sentence, cue.end) or pattern("denied_behind").match(behind)
    if cue.acts and pattern("object").match(behind) and pattern("about").search(sentence):
        return True
    bare = " *_`\"'([:"
    whole = cue.whole or bool(clause.strip(bare)) or pattern("answered").match(behind) is not None
    if not cue.wants and not pattern("quantified").sub(" ", clause).strip(bare) and pattern("exists").match(behind):
        return whole
    if cue.wants or not pattern("not").sub(" ", clause).strip(bare):
        return not cue.wants and tail is not None and whole
    states = pattern("verb").search(clause + (tail[0] if tail else ""))
    if cue.whole and sentence[cue.start : cue.end].isascii() and not states:
        return tail is not None and pattern("speaker").match(clause) is not None
    return bool(pattern("about").search(sentence) and (tail or pattern("linked").search(before)))


def _name_value(sentence: str, before: str, behind: str, clause: str, cue: Cue) -> float | str | None:
    """Return the value of a name (yes, B, Response 1) where a sentence begins with it, chooses or prefers it."""
    hedged = pattern("hedged").search(clause) or pattern("conditional").match(before)
    if preferred := pattern("preferred").match(sentence, cue.end):
        hedged = hedged or pattern("hedged_end").match(sentence, preferred.end())
        return "open" if hedged or preferred["not"] or pattern("not").search(clause) else cue.value
    lettered = cue.end - cue.start == 1 and behind.startswith(")")
    begins = not before.strip(" *_`\"'([")
    better = pattern("chose").search(sentence, 0, cue.start) and pattern("found_better").match(behind)
    if re.match(r"\.\s*\d", behind) or not (lettered or better or pattern("tail").match(sentence, cue.end)):
        return None
    ends = pattern("hedged_end").match(behind)
    if begins:
        short = cue.end - cue.start < 6 or sentence[cue.start].isupper()
        return None if behind.lstrip("*_`\"')").startswith(",") and not short else "open" if ends else cue.value
    if pattern("compared").search(clause) or not pattern("choice").search(before):
        return None
    return "open" if hedged or ends or pattern("not").search(clause) else cue.value


def rating_in(text: str, scale: tuple[float, float], *, first: bool, marked: int | None = None) -> Saying | None:
    """Return the one score that a reply gives: at its very beginning, or wherever it says that it rates.

    Where what was asked for is `marked`, it is the score that begins there, and nothing behind it doubts it.
    """
    low, high = scale
    if marked is not None:
        first_part, *rest = re.split(r"\n|(?<=[.])\s", text[marked:].strip(" \n*_`"), maxsplit=1)
        doubted = pattern("unsure").search(first_part) or any(map(pattern("hedged_score").match, rest))
        whole, there = rating_in(text, scale, first=first), rating_in(first_part, scale, first=False)
        return whole if whole and there and whole.value == there.value and not doubted else None
    scores: dict[float, tuple[int, int]] = {}
    begin = pattern("begin").match(_plain(text[:200]).lstrip())
    if begin and (first or begin["unit"] or begin["end"] is not None):
        ranged = any(pattern(name).match(begin.string, begin.end("n")) for name in ("range", "list")[: 2 - first])
        value = None if ranged else _rating(begin, low, high)
        if value is not None and first:
            return Saying((value - low) / (high - low), 0, len(text) - len(text.lstrip()) + begin.end("n"))
        scores = {} if value is None else {value: begin.span("n")}
    parts = {0: text} if len(text) <= 2 * END_CHARS else {0: text[:END_CHARS], len(text) - END_CHARS: text[-END_CHARS:]}
    for base, part in parts.items():
        for match in (match for name in _GIVEN_PATTERNS for match in pattern(f"given_{name}").finditer(part)):
            number = _rating(match, low, high)
            before = part[max(0, match.start("n") - 40) : match.start("n")]
            if number is not None and not pattern("scale_talk").search(before):
                scores[number] = base + match.start(), base + match.end()
        if pattern("turns").search(part):
            return None
    return Saying((next(iter(scores)) - low) / (high - low), *next(iter(scores.values()))) if len(scores) == 1 else None


def _rating(match: re.Match[str], low: float, high: float) -> float | None:
    """Return the number of a match, where it lies on the scale and its unit is that of the scale."""
    result = match.groupdict()
    number, top, unit = number_of(match["n"]), result.get("top"), result.get("unit") or ""
    strange = (top and number_of(top) != high) or (("%" in unit or "percent" in unit.casefold()) and high != 100)
    empty = len(re.findall("[\u2606\u2729]", unit))
    strange = strange or (bool(pattern("star").match(match["n"])) and (number or 0) + empty != high != 5 - empty)
    return None if number is None or strange or not low <= number <= high else number
