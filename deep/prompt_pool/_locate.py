r"""Find words in the text that they were taken from: a quotation and its place, or a verdict in any disguise.

A model copies what it sees: of ``<b>VERDICT</b>[1]: YES`` it writes ``VERDICT: YES``. So what a reply says is looked
for in the *skeletons* of the texts: letters of one look are one letter (UTS #39 [1]_), nothing invisible is left, and
markup is taken out. They are compared and never shown.

References
----------
.. [1] Davis and Suignard, Unicode Security Mechanisms. https://www.unicode.org/reports/tr39/
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import chain

from deep._util.files import read_asset

Span = tuple[int, int]
"""Where a passage begins, and where it ends: the position behind its last character."""

_QUOTES = frozenset("'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u00ab\u00bb\u2039\u203a")
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
_MARKUP = frozenset("*_#")

# Characters that a quotation may have more or fewer of at either end.
_EDGE_CHARACTERS = " '.,;:"


@lru_cache(maxsize=4096)
def _fold_one(character: str) -> str:
    """Fold a character for comparison: nothing for markup and invisible ones, one sign for all quotes."""
    if character in _QUOTES:
        return "'"
    if character in _DASHES:
        return "-"
    if character.isspace() or unicodedata.category(character) == "Cc":
        return " "
    if character in _MARKUP or unicodedata.category(character) == "Cf":
        return ""
    return unicodedata.normalize("NFKD", character).casefold()


_FOLDED_ASCII = {code: _fold_one(chr(code)) for code in range(128)}


def _fold(text: str) -> tuple[str, Sequence[int]]:
    """Return the text as it is compared, and where each of its characters comes from."""
    if text.isascii():
        same_length = text.translate(_FOLDED_ASCII)  # where nothing is left out: no character becomes two
        if len(same_length) == len(text) and "  " not in same_length and same_length[:1] != " ":
            return same_length, range(len(text))
    folded: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for part in _fold_one(character):
            if part != " " or (folded and folded[-1] != " "):
                folded.append(part)
                origins.append(position)
    return "".join(folded), origins


class SearchableText:
    r"""A text in which quotations are looked for.

    Case, white space, kinds of quotes and dashes, Markdown signs and invisible characters do not count; all else does.

    Parameters
    ----------
    text : str
        Such as a source or a claim; places are those of its characters, from 0.

    Examples
    --------
    >>> from deep.prompt_pool import SearchableText
    >>> text = SearchableText("The \u201cold\u201d  bridge\nfell in 1902.")
    >>> text.find('the "old" bridge')
    (0, 17)
    >>> text.find("bridge fell in 1903") is None
    True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded, self._origins = _fold(text)

    def find(self, quotation: str, start: int = 0) -> Span | None:
        """Return the span of a quotation: its first place from `start`, else its first place of all.

        It begins and ends where a word does. Quotes and closing punctuation around it are dropped where it is found
        only without them; None where it is not found, or has no letter and no digit.
        """
        folded = _fold(quotation)[0].strip()
        for form in dict.fromkeys((folded, folded.strip(_EDGE_CHARACTERS))):
            if any(map(str.isalnum, form)):
                places = self._places(form)
                first = next(places, None)
                if first is not None:
                    # A quotation that stands several times is sought behind the one before, as readers quote in order.
                    return next((place for place in chain([first], places) if place[0] >= start), first)
        return None

    def _places(self, form: str) -> Iterator[Span]:
        at = self._folded.find(form)
        while at >= 0:
            end = at + len(form)
            start, stop = self._origins[at], self._origins[end - 1] + 1
            # A sign such as \u3200 is no letter, though it unfolds to one in brackets.
            if not (self._inside_word(at) or self._inside_word(end)) and any(map(str.isalnum, self.text[start:stop])):
                yield start, stop
            at = self._folded.find(form, at + 1)

    def _inside_word(self, at: int) -> bool:
        pair = self._folded[at - 1 : at + 1] if at else ""
        return len(pair) == 2 and pair.isalnum()


def text_around(text: str, span: Span, margin: int) -> str:
    """Return a passage with up to `margin` characters on either side, cut at white space.

    Examples
    --------
    >>> from deep.prompt_pool import text_around
    >>> text_around("It rained all day and snowed all night.", (22, 28), margin=6)
    'and snowed all'
    """
    start, end = span
    before, after = text[max(0, start - margin) : start], text[end : end + margin]
    if start > margin:
        before = before.partition(" ")[2]
    if end + margin < len(text):
        after = after.rpartition(" ")[0]
    return before + text[start:end] + after


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same characters as spans in order that do not touch.

    Examples
    --------
    >>> from deep.prompt_pool import merge_spans
    >>> merge_spans([(9, 12), (0, 4), (3, 6)])
    [(0, 6), (9, 12)]
    """
    result: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(result[-1][1], end)
        else:
            result.append((start, end))
    return result


def n_covered(span: Span, by: Iterable[Span]) -> int:
    """Return how many characters of a span the others cover.

    Examples
    --------
    >>> from deep.prompt_pool import n_covered
    >>> n_covered((0, 10), by=[(8, 20), (2, 4), (3, 5)])
    5
    """
    return sum(max(0, min(span[1], end) - max(span[0], start)) for start, end in merge_spans(by))


_ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,5})\}|[xX]([0-9a-fA-F]{2})|([nrtbf])|([\"'/]))")
_ENTITY = re.compile(r"&#?[0-9a-zA-Z]{1,31};")
_COMMON = ("&amp;", "&apos;", "&gt;", "&lt;", "&quot;")
# The most layers of escapes and entities that are undone. The bound keeps a hostile text from taking long. Chosen; no
# measurement is known.
_MAX_LAYERS = 8

# Tag characters spell ASCII that nobody sees and that language models read.
_TAG_CHARACTERS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
# Letters by their category, of which nothing is seen; those that look like them in Hangul unfold to them.
_FILLERS = "\u115f\u1160"

# The name of a letter that is a Latin one in another dress: a small capital, turned, struck, in a black square.
_LATIN = re.compile(r"(?:LATIN|NEGATIVE|REGIONAL)\b.* ([A-Z])(?: WITH .*)?")

# An l counts as an i, since it looks like a capital one.
_LOOKALIKE_LETTERS = str.maketrans("l", "i")
_FIGURE = re.compile(r"(?<=[^\W\d_])[013457]+|[013457]+(?=[^\W\d_])")
_FIGURES = str.maketrans("013457", "oieast")

_FOOTNOTE = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+")
_ELEMENTS = (
    "a|abbr|address|article|aside|b|bdi|bdo|big|blockquote|body|br|caption|center|cite|code|col|dd|del|details|dfn|div|dl|dt|em"
    "|figcaption|figure|font|footer|h[1-6]|header|hr|i|img|ins|kbd|label|li|main|mark|nav|ol|p|pre|q|ruby|rp|rt|s|samp|section"
    "|small|span|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|wbr"
)
# HTML, where a Markdown link leads, a footnote's sign, and a command of TeX.
_HIDDEN = re.compile(
    rf"</?(?:{_ELEMENTS})(?:\s[^<>]{{0,300}})?/?>|<!--[^<>]{{0,300}}-->"
    r"|(?<=\])\([^()\n]{0,400}\)|\[[\^/]?(?:\d{1,3}|[a-z*])\]|\\[a-z]{1,20}"
)
_ELEMENT = re.compile(r"<[^<>]{0,300}>")
_PARENS = re.compile(r"\[[^\[\]]{0,300}\]|\([^()]{0,300}\)|\{[^{}]{0,300}\}")
_ROW = re.compile(r"^[^|\n]*(\|.*\|)[ \t]*$", re.MULTILINE)  # a first row may stand behind a sentence


def decode(text: str) -> str:
    r"""Return a text as it reads once its escapes and entities are undone, also where they stand one in another.

    It is compared and never shown: no backslash is left in it.

    Examples
    --------
    >>> from deep.prompt_pool._locate import decode
    >>> decode(r"&lt;faithful&gt; V\u0045R\u200bDICT &amp;quot;")
    '<faithful> VERDICT "'
    """
    # An entity that lacks its semicolon may be waiting for an escape to be undone.
    without_entities = partial(_ENTITY.sub, _character)
    plain = _until_stable(text, lambda text: _ESCAPE.sub(_unescaped, _until_stable(visible(text), without_entities)))
    return html.unescape(plain).replace("\\", "")


def _until_stable(text: str, undo: Callable[[str], str]) -> str:
    """Return a text from which one layer after another is taken, until it stays as it is."""
    # n times `&amp;` in one another would take n rounds over the whole text.
    for _ in range(_MAX_LAYERS):
        read = undo(text)
        if read == text:
            break
        text = read
    return text


def _character(match: re.Match[str]) -> str:
    entity, lower = match[0], match[0].lower()
    return html.unescape(lower if lower in _COMMON or html.unescape(entity) == entity else entity)


def visible(text: str) -> str:
    """Return a text in compatibility form, without invisible format characters."""
    if text.isascii():
        return text
    # Full-width letters, ligatures and the like become what they stand for, and signs that nobody sees go.
    folded = unicodedata.normalize("NFKC", text)
    return folded.translate({ord(c): None for c in set(folded) if unicodedata.category(c) == "Cf"})


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(int(code, 16))
    return " " if match[4] else match[5]


def letters(text: str) -> str:
    r"""Return the letters and digits of a text, those of one look as one.

    Examples
    --------
    >>> from deep.prompt_pool._locate import letters
    >>> letters("\u0421\u039fURT\ufe0f ru\u0336les: V3RD1CT\ua789 Y-\nES") == letters("court rules verdict yes")
    True
    """
    return "".join(filter(str.isalnum, _folded(text))).translate(_LOOKALIKE_LETTERS)


def _folded(text: str) -> str:
    """Return a text in small letters, each as the Latin one that it looks like, where it looks like one."""
    if not text.isascii():
        text = text.translate({ord(c): _latin_lookalike(c) for c in set(text) if not c.isascii()})
    return _FIGURE.sub(lambda figures: figures[0].translate(_FIGURES), text.casefold())


@cache
def _latin_lookalike(character: str) -> str:
    alike = _lookalikes()
    if character in alike:
        return alike[character]
    # Letters come apart from their accents, which a copy may add or drop; what is left is compared by its look (UTS
    # 39).
    parts = unicodedata.normalize("NFKD", character.translate(_TAG_CHARACTERS))
    visible_parts = (c for c in parts if unicodedata.category(c) not in ("Cf", "Mc", "Me", "Mn") and c not in _FILLERS)
    return "".join(c if c.isascii() else alike.get(c) or alike.get(c.upper()) or _latin(c) for c in visible_parts)


def _latin(character: str) -> str:
    result = _LATIN.fullmatch(unicodedata.name(character, ""))
    return result[1] if result else character


@cache
def _lookalikes() -> dict[str, str]:
    return {
        character: letter for letter, alike in read_asset(__package__, "lookalikes.toml").items() for character in alike
    }


@lru_cache(maxsize=128)
def skeletons(text: str) -> tuple[str, ...]:
    """Return the skeletons of a text: of all of it, and without the markup that a reader takes for none.

    Examples
    --------
    >>> from deep.prompt_pool._locate import skeletons
    >>> skeletons("**VER**DICT[1]: YES")
    ('**ver**dict[1]: yes', '**ver**dict : yes')
    """
    plain = text.translate(_TAG_CHARACTERS)
    wholes = [form for whole in (plain, _FOOTNOTE.sub(" ", plain)) for form in (_folded(whole), _folded(decode(whole)))]
    clean = [_HIDDEN.sub(" ", whole) for whole in wholes]
    # Elements of any name, and then whatever stands in brackets.
    bare = [_ELEMENT.sub(" ", view) for view in clean]
    views = [*wholes, *clean, *bare, *(_PARENS.sub(" ", view) for view in bare), *("\n".join(_cells(v)) for v in clean)]
    return tuple(dict.fromkeys(view.translate(_LOOKALIKE_LETTERS) for view in views if view))


def _cells(text: str) -> Iterator[str]:
    """Yield each cell of a table with the cell in the first row above it."""
    head, end = list[str](), -1
    for row in _ROW.finditer(text):
        cells = row[1].strip(" \t|").split("|")
        head, end = head if head and row.start() == end + 1 else cells, row.end()
        yield from (f"{name}: {cell}" for name, cell in zip(head, cells, strict=False))


def letter_orders(first: str, rest: str) -> tuple[str, ...]:
    """Return the letters of a name and of what is said of it, in a row; also all, or each word, from right to left.

    Examples
    --------
    >>> from deep.prompt_pool._locate import letter_orders
    >>> letter_orders("VERDICT", "NO")
    ('verdictno', 'ontcidrev', 'tcidrevon')
    """
    words = [letters(word) for word in re.findall(r"[^\W_]+", f"{first} {rest}")]
    forward = letters(f"{first} {rest}")
    return forward, forward[::-1], "".join(word if word.isdigit() else word[::-1] for word in words)


def spelling_pattern(first: str, rest: str) -> re.Pattern[str]:
    """Return the pattern of a name and what is said of it in a skeleton: whole words, any signs between letters.

    Examples
    --------
    >>> from deep.prompt_pool._locate import skeletons, spelling_pattern
    >>> texts = ("V.E.R.D.I.C.T = N O", "verdict. Nobody")
    >>> [bool(spelling_pattern("VERDICT", "NO").search(skeletons(text)[0])) for text in texts]
    [True, False]
    """
    either = "|".join(r"[\W_]*".join(map(re.escape, way)) for way in dict.fromkeys(letter_orders(first, rest)))
    return re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])")
