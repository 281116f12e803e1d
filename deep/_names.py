"""Names that others chose: which are refused, and how any of them becomes the name of a file."""

import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256

from deep.exceptions import InputError

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
    >>> from deep._names import check_name
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
    >>> from deep._names import person_name
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
    >>> from deep._names import plain_form
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
    >>> from deep._names import file_name
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
