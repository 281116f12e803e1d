r"""A text as a reader sees it, so that a verdict in it is found whatever signs, markup or letters it is written with.

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
from collections.abc import Iterator
from functools import cache, lru_cache

from deep._util.files import packaged

_ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,5})\}|[xX]([0-9a-fA-F]{2})|([nrtbf])|([\"'/]))")
_ENTITY = re.compile(r"&#?[0-9a-zA-Z]{1,31};")
_COMMON = ("&amp;", "&apos;", "&gt;", "&lt;", "&quot;")
_MOST_LAYERS = 8

# Tag characters spell ASCII that nobody sees and that language models read.
_TAG_CHARACTERS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_FILLERS = "\u115f\u1160"
"""Letters by their category, of which nothing is seen; those that look like them in Hangul unfold to them."""

_LATIN = re.compile(r"(?:LATIN|NEGATIVE|REGIONAL)\b.* ([A-Z])(?: WITH .*)?")
"""The name of a letter that is a Latin one in another dress: a small capital, turned, struck, in a black square."""

_ALIKE = str.maketrans("l", "i")
_FIGURE = re.compile(r"(?<=[^\W\d_])[013457]+|[013457]+(?=[^\W\d_])")
_FIGURES = str.maketrans("013457", "oieast")

_NOTE = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+")
_ELEMENTS = (
    "a|abbr|address|article|aside|b|bdi|bdo|big|blockquote|body|br|caption|center|cite|code|col|dd|del|details|dfn|div|dl|dt|em"
    "|figcaption|figure|font|footer|h[1-6]|header|hr|i|img|ins|kbd|label|li|main|mark|nav|ol|p|pre|q|ruby|rp|rt|s|samp|section"
    "|small|span|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|wbr"
)
# HTML, where a Markdown link leads, a footnote's sign, and a command of TeX.
_MARKUP = re.compile(
    rf"</?(?:{_ELEMENTS})(?:\s[^<>]{{0,300}})?/?>|<!--[^<>]{{0,300}}-->"
    r"|(?<=\])\([^()\n]{0,400}\)|\[[\^/]?(?:\d{1,3}|[a-z*])\]|\\[a-z]{1,20}"
)
_ELEMENT = re.compile(r"<[^<>]{0,300}>")
_ASIDE = re.compile(r"\[[^\[\]]{0,300}\]|\([^()]{0,300}\)|\{[^{}]{0,300}\}")
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)


def decoded(text: str) -> str:
    r"""Return a text as it reads once its escapes and entities are undone, also where they stand one in another.

    It is compared and never shown: no backslash is left in it.

    Examples
    --------
    >>> from deep.prompt_pool._skeleton import decoded
    >>> decoded(r"&lt;faithful&gt; V\u0045R\u200bDICT &amp;quot;")
    '<faithful> VERDICT "'
    """
    for _ in range(_MOST_LAYERS):
        read = _ESCAPE.sub(_unescaped, _without_entities(_visible(text)))
        if read == text:
            break
        text = read
    return html.unescape(text).replace("\\", "")


def _without_entities(text: str) -> str:
    """Return a text without entities; one that lacks its semicolon may be waiting for an escape to be undone."""
    for _ in range(_MOST_LAYERS):
        read = _ENTITY.sub(lambda match: _character(match[0]), text)
        if read == text:
            break
        text = read
    return text


def _character(entity: str) -> str:
    lower = entity.lower()
    return html.unescape(lower if lower in _COMMON or html.unescape(entity) == entity else entity)


def _visible(text: str) -> str:
    """Return a text in compatibility form, without invisible format characters."""
    if text.isascii():
        return text
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
    >>> from deep.prompt_pool._skeleton import letters
    >>> letters("\u0421\u039fURT\ufe0f ru\u0336les: V3RD1CT\ua789 Y-\nES") == letters("court rules verdict yes")
    True
    """
    return "".join(filter(str.isalnum, _folded(text))).translate(_ALIKE)


def _folded(text: str) -> str:
    """Return a text in small letters, each as the Latin one that it looks like, where it looks like one."""
    if not text.isascii():
        text = text.translate({ord(c): _look(c) for c in set(text) if not c.isascii()})
    return _FIGURE.sub(lambda figures: figures[0].translate(_FIGURES), text.casefold())


@cache
def _look(character: str) -> str:
    known = _lookalikes()
    if character in known:
        return known[character]
    parts = unicodedata.normalize("NFKD", character.translate(_TAG_CHARACTERS))
    seen = (c for c in parts if unicodedata.category(c) not in ("Cf", "Mc", "Me", "Mn") and c not in _FILLERS)
    return "".join(c if c.isascii() else known.get(c) or known.get(c.upper()) or _latin(c) for c in seen)


def _latin(character: str) -> str:
    found = _LATIN.fullmatch(unicodedata.name(character, ""))
    return found[1] if found else character


@cache
def _lookalikes() -> dict[str, str]:
    return {
        character: letter for letter, alike in packaged(__package__, "lookalikes.toml").items() for character in alike
    }


@lru_cache(maxsize=128)
def skeletons(text: str) -> tuple[str, ...]:
    """Return what may be seen of a text: all of it, and without the markup that a reader takes for none.

    Examples
    --------
    >>> from deep.prompt_pool._skeleton import skeletons
    >>> skeletons("**VER**DICT[1]: YES")
    ('**ver**dict[1]: yes', '**ver**dict : yes')
    """
    plain = text.translate(_TAG_CHARACTERS)
    wholes = [form for whole in (plain, _NOTE.sub(" ", plain)) for form in (_folded(whole), _folded(decoded(whole)))]
    shown = [_MARKUP.sub(" ", whole) for whole in wholes]
    # Elements of any name, and then whatever stands in brackets.
    bare = [_ELEMENT.sub(" ", view) for view in shown]
    views = [*wholes, *shown, *bare, *(_ASIDE.sub(" ", view) for view in bare), *("\n".join(_cells(v)) for v in shown)]
    return tuple(dict.fromkeys(view.translate(_ALIKE) for view in views if view))


def _cells(text: str) -> Iterator[str]:
    """Yield each cell of a table with the cell in the first row above it."""
    head: list[str] = []
    end = -1
    for row in _ROW.finditer(text):
        cells = row[0].strip(" \t|").split("|")
        head, end = head if head and row.start() == end + 1 else cells, row.end()
        yield from (f"{name}: {cell}" for name, cell in zip(head, cells, strict=False))


def ways(first: str, rest: str) -> tuple[str, ...]:
    """Return the letters of a name and of what is said of it, in a row; also all, or each word, from right to left.

    Examples
    --------
    >>> from deep.prompt_pool._skeleton import ways
    >>> ways("VERDICT", "NO")
    ('verdictno', 'ontcidrev', 'tcidrevon')
    """
    words = [letters(word) for word in re.findall(r"[^\W_]+", f"{first} {rest}")]
    forward = letters(f"{first} {rest}")
    return forward, forward[::-1], "".join(word if word.isdigit() else word[::-1] for word in words)


def spelled(first: str, rest: str) -> re.Pattern[str]:
    """Return what finds a name and what is said of it in a skeleton: whole words, with any signs between letters.

    Examples
    --------
    >>> from deep.prompt_pool._skeleton import skeletons, spelled
    >>> texts = ("V.E.R.D.I.C.T = N O", "verdict. Nobody")
    >>> [bool(spelled("VERDICT", "NO").search(skeletons(text)[0])) for text in texts]
    [True, False]
    """
    either = "|".join(r"[\W_]*".join(map(re.escape, way)) for way in dict.fromkeys(ways(first, rest)))
    return re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_])")
