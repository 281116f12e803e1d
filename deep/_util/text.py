"""Sentences of a text, with their places in it; text that can be stored; text in columns."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import sha256

from deep.exceptions import InputError

SPACED_INITIAL = re.compile(r"([A-Z](?<!\w[A-Z])\s*)[^\S\x00-\x7f](?=\.)")
"""One capital, and white space of several bytes before its full stop: there sentencex 1.0.32 panics."""


def is_storable(text: str) -> bool:
    """Return whether files and databases can hold a text: no NUL, no lone surrogate."""
    return "\0" not in text and (text.isascii() or text == text.encode(errors="replace").decode())


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Return (start, end) of every sentence of a text, without the white space around it.

    Parameters
    ----------
    text : str
    language : str, default='en'
        A code that sentencex knows; what it knows of abbreviations depends on it.

    Returns
    -------
    list of (int, int)
        In order, not overlapping; together they hold every character that is not white space.

    Examples
    --------
    >>> from deep._util.text import sentence_spans
    >>> text = "Dr. Wu paid 3.5 million. Really?  Yes."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. Wu paid 3.5 million.', 'Really?', 'Yes.']
    """
    from sentencex import segment

    if not text.isascii():
        # The splitter takes no lone surrogates; in their place a character each, so that positions stay.
        text = SPACED_INITIAL.sub(r"\1 ", text.encode(errors="replace").decode())
    spans = []
    end = 0
    for piece in segment(language, text):
        # The white space between sentences may be other than in the text, so that lengths do not add up to positions.
        sentence = piece.strip()
        if sentence:
            start = text.index(sentence, end)
            end = start + len(sentence)
            spans.append((start, end))
    return spans


def listed(names: Sequence[str], most: int) -> str:
    """Return names in a line, and beyond the first `most` how many more there are.

    Examples
    --------
    >>> listed(["news", "chat", "law"], 2)
    'news, chat and 1 others'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} others" if more > 0 else "")


def table(rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return rows in columns, the last `right` of them flush right.

    Examples
    --------
    >>> print(table([("DATASET", "N"), ("fect", "410")], right=1))
    DATASET    N
    fect     410
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = len(widths) - right
    return "\n".join(
        "  ".join(
            cell.rjust(width) if position >= first else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


REFUSED = {
    "Cc": "the control character",
    "Cf": "the invisible character",
    "Cs": "half of a surrogate pair",
    "Zl": "the line separator",
    "Zp": "the paragraph separator",
}
"""Unicode categories that no name may hold: they end a line, move a cursor, turn the direction of writing, or hide."""

JOINERS = "\u200c\u200d"
"""Invisible characters that some scripts need to be spelt right."""

PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?")
"""Names that are their own file names on every system, whatever it makes of case, dots and length."""

RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
"""Names that Windows keeps for devices, with any ending."""

ODD = re.compile(r"[^\x00-\x7F]|^\s|\s$|\s\s")
"""What a name holds that another one can look like: blanks to be overlooked, and all that is not ASCII."""

LONGEST = 1000
"""Characters that a name may have: a longer one fits no figure."""

DIGEST = re.compile(r"(?:.*-)?[0-9a-f]{8}")
"""Names that look as if `file_name` had made them."""


def check_name(name: str, param: str, *, where: str = "") -> str:
    r"""Return a name if it can stand on one line of any output.

    Parameters
    ----------
    name : str
        Of a voter, a dataset, a table, a prompt or an LLM.
    param : str
        The parameter that an error names.
    where : str, default=''
        The place that an error adds, for instance ``" at column 3 of 'votes.csv'"``.

    Raises
    ------
    InputError
        The name is empty, blank or longer than 1,000 characters, or holds a control character, a line separator, an
        invisible character (a mark of writing direction, a byte-order mark) or half of a surrogate pair.

    Examples
    --------
    >>> from deep._util.text import check_name
    >>> check_name("strict/gpt-4", "voter_names")
    'strict/gpt-4'
    >>> check_name("a\n; DROP TABLE votes", "voter_names")
    Traceback (most recent call last):
    deep.exceptions.InputError: `voter_names` must be printable text on one line. Got the control character U+000A ...
    """
    if name.isprintable() and name.strip() and len(name) <= LONGEST:
        return name  # nearly all
    found = next((c for c in name if unicodedata.category(c) in REFUSED and c not in JOINERS), None)
    if found is not None:
        fault = f"{REFUSED[unicodedata.category(found)]} U+{ord(found):04X} in {name[:60]!a}"
    elif not name.strip():
        fault = "nothing"
    elif len(name) > LONGEST:
        fault = f"{len(name):,} characters, where {LONGEST:,} is the most"
    else:
        return name
    raise InputError(f"`{param}` must be printable text on one line. Got {fault}{where}. Rename it.")


def person_name(name: str) -> str:
    r"""Return a name of a person in one spelling: composed (NFC), without white space around it.

    Examples
    --------
    >>> from deep._util.text import person_name
    >>> person_name(" A\u0301nn") == "\xc1nn"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def plain_form(name: str) -> str:
    r"""Return a name as people see it: composed (NFC), without invisible characters, its blanks single and inside.

    Names that differ and have one such form are twins: nobody can tell them apart, and what belongs together is
    counted as two.

    Examples
    --------
    >>> from deep._util.text import plain_form
    >>> plain_form("e\u0301te\u0301 "), plain_form("news")
    ('été', 'news')
    """
    if not ODD.search(name):
        return name  # nearly all
    visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return " ".join(unicodedata.normalize("NFC", visible).split())


def check_twins(names: Iterable[str], param: str) -> None:
    """Raise an InputError where two names differ and look the same."""
    seen: dict[str, str] = {}
    for name in names:
        before = seen.setdefault(plain_form(name), name)
        if before != name:
            raise InputError(
                f"`{param}` must differ in what can be seen. Got {before!a} and {name!a}. "
                "Write the same name in one way, and others in two."
            )


def file_name(name: str) -> str:
    """Return a name of a file for any name: readable, its own, and safe on every system.

    A name of small letters, digits, dots, dashes and underscores stays as it is. Any other gets eight digits of its
    SHA-256, so that no two names share a file, also where a system takes ``A`` and ``a`` for the same.

    Parameters
    ----------
    name : str

    Returns
    -------
    str
        At most 80 characters of ``a-zA-Z0-9._-``.

    Examples
    --------
    >>> from deep._util.text import file_name
    >>> file_name("aggrefact-xsum")
    'aggrefact-xsum'
    >>> file_name("framing/co"), file_name("..")
    ('framing-co-38e7e141', '5ec1f7e7')
    """
    if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name) and not DIGEST.fullmatch(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("_-")[:70].rstrip("_-")
    return f"{readable}-{digest}" if readable else digest
