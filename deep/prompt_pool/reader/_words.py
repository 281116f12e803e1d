"""The words of answers: labels, numbers, the names of an answer, and the lists of `words.toml`."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

LONGEST_VALUE = 200

_DECORATION = re.compile(r"[\s*_`#\"'\u2018\u2019\u201c\u201d\xab\xbb\u3008-\u3011()\[\]{}\u2010-\u2015-]+")


def visible(text: str) -> str:
    """Return compatibility-normalised text without invisible format characters."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text)
    return "".join(character for character in folded if unicodedata.category(character) != "Cf")


@lru_cache(maxsize=1024)
def normalise_label(text: str) -> str:
    r"""Return a label without case, markdown, quotes, hyphens, repeated white space and closing punctuation.

    A strikethrough, a question mark and any sign that could turn the meaning stay, so that they match no label.

    Examples
    --------
    >>> from deep.prompt_pool.reader._words import normalise_label
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
    wanted = normalise_label(value)
    return next((polarity for label, polarity in labels.items() if normalise_label(label) == wanted), None)


_TONGUES = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_AROUND = _TONGUES["around"]
_UNITS, _TENS = (_TONGUES["numbers"][name].split() for name in ("units", "tens"))
_NUMBERS = {word: i for i, word in enumerate(_UNITS)} | {"hundred": 100, "a hundred": 100, "one hundred": 100}
_NUMBERS |= {ten: 10 * i for i, ten in enumerate(_TENS, start=2)}
_NUMBERS |= {f"{ten} {_UNITS[j]}": 10 * i + j for i, ten in enumerate(_TENS, start=2) for j in range(1, 10)}


@cache
def one_of(name: str) -> str:
    """Return the alternatives of a list of `words.toml` as a pattern, with the lists that it refers to."""
    known = {**{key: value.split("|") for key, value in _AROUND.items()}, **_TONGUES["alternatives"]}
    named = [word for words in _TONGUES["names"].values() for word in words.split("|")]
    known["names"] = sorted(named, key=len, reverse=True)
    known["numbers"] = [word.replace(" ", "[ -]") for word in sorted(_NUMBERS, key=len, reverse=True)]
    return "|".join(_expanded(part.replace("'", "['\u2019]")) for part in known[name])


def _expanded(text: str) -> str:
    """Return a pattern with the lists and the patterns in braces put in."""
    patterns = _TONGUES["patterns"]
    known = {*_AROUND, *_TONGUES["alternatives"], "names", "numbers"}
    put = re.sub(r"\{([a-z_]+)\}", lambda at: one_of(at[1]) if at[1] in known else _expanded(patterns[at[1]]), text)
    return str(put)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `words.toml`, whatever the case."""
    return re.compile(_expanded(_TONGUES["patterns"][name]), re.IGNORECASE)


def number_of(text: str) -> float | None:
    """Return the number that a word, its figures or a row of stars are."""
    word = text.casefold().replace("-", " ")
    if word in _NUMBERS:
        return float(_NUMBERS[word])
    if pattern("stars").fullmatch(text):
        return float(len(pattern("star").findall(text)))
    return float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text, re.ASCII) else None


_BARE = frozenset(one_of("bare").split("|"))


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
            said = match["core"] or match["unspaced"]
            label, value = next((word, value) for word, form, value in self.words if form.fullmatch(said))
            others = [other for _, form, other in self.words if not form.fullmatch(label)]
            named, turned = _names_answer(label), bool(match["un"] or match["free"] or match["not"])
            turns = value in (0, 1) and all(other in ((0, 1, -1) if value == 1 else (1, -1)) for other in others)
            if not turned or (turns and not named):
                plain, bare = (re.sub(r"[\W_]", "", normalise_label(text)) for text in (said, label))
                whole = turned or plain in (bare, bare + "s", bare[:-1])
                verbal = self.verbs if whole else pattern("of_verbs").search(label) is not None
                acts = verbal and not pattern("no_verb").search(said)
                wants = label.endswith("ed") and said.casefold().endswith("s")
                yield Cue(1 - value if turned else value, *match.span(), named, whole, turns, acts, wants)

    def blames(self, name: str) -> bool:
        """Tell whether a name is that of a fault, under which yes or true is no label of 1."""
        affirmed = any(value == 1 and label in ("yes", "true") for label, _, value in self.words)
        return affirmed and pattern("fault").search(name.replace("_", " ")) is not None


def _names_answer(label: str) -> bool:
    """Tell whether a label says nothing by itself: yes, B, Response 1."""
    spelled = re.search(r"(?:^|\W)\w$|\d$", label) is not None
    return label in _BARE or (spelled and not pattern("unspaced").search(label))


@lru_cache(maxsize=64)
def vocabulary(labels: tuple[tuple[str, float], ...]) -> Vocabulary:
    """Return the words of labels; one that only denies another (not supported, no error) is left to its core."""
    known = {normalise_label(pattern("between_words").sub(" ", label)): value for label, value in labels}
    for label, value in [*known.items()]:
        core = re.sub(r"^(?:an?|no|not|any|un|in|non)(?: |(?<=un|in)(?=\w{4}))", "", label)
        denies = not label.startswith(("a ", "an ", "any "))
        if value in (0, 1) and core != label and (known.get(core) == 1 - value or not (denies and " " in core)):
            known.setdefault(core, 1 - value if denies else value)
            del known[label]
    longest_first = sorted(known, key=lambda label: (-len(label), label))
    words = [(label, re.compile(_spelled(label), re.IGNORECASE), known[label]) for label in longest_first]
    spaced, unspaced = (
        "|".join(form.pattern for label, form, _ in words if bool(pattern("unspaced").search(label)) == kind) or "(?!)"
        for kind in (False, True)
    )
    found = (
        rf"(?<![^\W_])(?!(?-i:a [A-E]\b))(?P<un>(?:un|in|non[- ]?|dis|ir|im|il)(?=\w{{4}}))??(?P<core>{spaced})"
        rf"(?P<free>[- ]free)?(?!-?[^\W_])|(?P<not>[\u4e0d\u672a\u975e\u65e0\u7121])?(?P<unspaced>{unspaced})"
    )
    verbs = {value for label, value in known.items() if label.endswith("s")} >= {0, 1}
    return Vocabulary(words, re.compile(found, re.IGNORECASE), verbs)


def _spelled(label: str) -> str:
    """Return the pattern of the forms of a label's words."""
    if pattern("unspaced").search(label) or _names_answer(label):
        return r"[\s*_`\"'\u2010-\u2015()-]*".join(map(re.escape, label.split())) + str(_TONGUES["same"].get(label, ""))
    return r"[\s*_`\"'\u2010-\u2015-]*(?:(?:that|which) (?:is|are) )?".join(map(_family, label.split()))


def _family(word: str) -> str:
    for end, forms in _TONGUES["families"] if len(word) > 3 else ():
        if re.search(f"(?:{end})$", word):
            return re.escape(re.sub(f"(?:{end})$", "", word, count=1)) + str(forms)
    return re.escape(word)
