"""Names that others chose, of voters and of datasets; sentences of a text, and text that can be stored."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import NamedTuple

from deep.exceptions import InputError

# One capital, and white space of several bytes before its full stop: there sentencex 1.0.32 panics.
SPACED_INITIAL = re.compile(r"([A-Z](?<!\w[A-Z])\s*)[^\S\x00-\x7f](?=\.)")


def is_storable(text: str) -> bool:
    """Return whether files and databases can hold a text: no NUL, no lone surrogate."""
    return "\0" not in text and (text.isascii() or text == text.encode(errors="replace").decode())


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of every sentence of a text, without the white space around it.

    Parameters
    ----------
    text : str
        Any text. One without a mark that ends sentences, and without a blank line, is one sentence.

    Returns
    -------
    list of (int, int)
        In order, not overlapping; together they hold every character that is not white space.

    Examples
    --------
    >>> from deep._util.names import sentence_spans
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
    for piece in segment("en", text):
        # The white space between sentences may be other than in the text, so that lengths do not add up to positions.
        sentence = piece.strip()
        if sentence:
            start = text.index(sentence, end)
            end = start + len(sentence)
            spans.append((start, end))
    return spans


def listed(names: Sequence[object], most: int = 4, rest: str = "others") -> str:
    """Return names in a line, and beyond the first `most` how many more there are.

    Examples
    --------
    >>> listed(["news", "chat", "law"], 2), listed(["news", "chat", "law"], 1)
    ('news, chat and 1 other', 'news and 2 others')
    """
    more = len(names) - most
    text, rest = ", ".join(map(str, names[:most])), rest if more > 1 else rest.removesuffix("s")
    return f"{text} and {more:,} {rest}" if more > 0 else text


def format_dollars(amount: float) -> str:
    """Return an amount in dollars, with cents and what is below them as far as it says something.

    Examples
    --------
    >>> format_dollars(0), format_dollars(0.0042), format_dollars(12.3456)
    ('nothing', '$0.0042', '$12.35')
    """
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.2g}" if amount else "nothing"


def shorten(name: str, most: int) -> str:
    """Return a name of at most so many characters.

    Examples
    --------
    >>> shorten("strict-grounding", 8)
    'strict-…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


# A judge that asks an LLM is named PROMPT@HASH/MODEL.
VERSION_HASH = re.compile(r"@[0-9a-f]{6,}(?=/|$)")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return by name the name without the hash of its version, where that is still of one.

    Examples
    --------
    >>> list(short_names(["lexical-numbers@4a471084", "strict@11111111", "strict@22222222"]).values())
    ['lexical-numbers', 'strict@11111111', 'strict@22222222']
    >>> short_names(["yes-no@4a471084/gpt-4o"])["yes-no@4a471084/gpt-4o"]
    'yes-no/gpt-4o'
    """
    plain = {name: VERSION_HASH.sub("", name, count=1) for name in names}
    of = Counter(plain.values())
    return {name: short if of[short] == 1 else name for name, short in plain.items()}


def format_table(rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return rows in columns, the last `right` of them flush right.

    Examples
    --------
    >>> print(format_table([("DATASET", "N"), ("fect", "410")], right=1))
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


# The most rows of a table in a notebook. A cell of a notebook stays short. Chosen; no measurement is known.
MAX_ROWS = 8


def html_table(said: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return lines and the first rows of a table as HTML, for a notebook."""
    shown_rows = [*rows[:MAX_ROWS], *([(f"and {len(rows) - MAX_ROWS} more",)] if len(rows) > MAX_ROWS else [])]
    lines = "".join(f"<div>{escape(line)}</div>" for line in said)
    cells = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in shown_rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return f"{lines}<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


# Unicode categories that no name may hold: they end a line, move a cursor, turn the direction of writing, or hide.
REFUSED_CATEGORIES = {
    "Cc": "the control character",
    "Cf": "the invisible character",
    "Cs": "half of a surrogate pair",
    "Zl": "the line separator",
    "Zp": "the paragraph separator",
}

# Invisible characters that some scripts need to be spelt right.
WIDTH_JOINERS = "\u200c\u200d"

SAFE_FILE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?")
"""Names that are their own file names on every system, whatever it makes of case, dots and length."""

# Names that Windows keeps for devices, with any ending.
RESERVED_FILE_NAME = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")

# The parts of a name that another one can look like: blanks to be overlooked, and all that is not ASCII.
ODD_CHARACTER = re.compile(r"[^\x00-\x7F]|^\s|\s$|\s\s")

# Letters and marks, by their category, that show nothing.
INVISIBLE_LETTERS = "\u034f\u115f\u1160\u3164\uffa0"

# The most characters of a name: a longer one fits no figure.
LONGEST_NAME = 1000

# A name that looks as if `file_name` had made it.
DIGESTED_NAME = re.compile(r"(?:.*-)?[0-9a-f]{8}")


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
    >>> from deep._util.names import check_name
    >>> check_name("strict/gpt-4", "voter_names")
    'strict/gpt-4'
    >>> check_name("a\n; DROP TABLE votes", "voter_names")
    Traceback (most recent call last):
    deep.exceptions.InputError: `voter_names` must be printable text on one line. Got the control character U+000A ...
    """
    if not isinstance(name, str):
        raise InputError(f"`{param}` must be text. Got {name!r:.60}.")
    if name.isprintable() and name.strip() and len(name) <= LONGEST_NAME:
        return name  # nearly all
    result = next((c for c in name if unicodedata.category(c) in REFUSED_CATEGORIES and c not in WIDTH_JOINERS), None)
    if result is not None:
        fault = f"{REFUSED_CATEGORIES[unicodedata.category(result)]} U+{ord(result):04X} in {name[:60]!a}"
    elif not name.strip():
        fault = "nothing"
    elif len(name) > LONGEST_NAME:
        fault = f"{len(name):,} characters, and at most {LONGEST_NAME:,} are allowed"
    else:
        return name
    raise InputError(f"`{param}` must be printable text on one line. Got {fault}{where}. Rename it.")


def visible_form(name: str) -> str:
    r"""Return a name as people see it: composed (NFC), without invisible characters, its blanks single and inside.

    Names that differ and have one such form are twins: nobody can tell them apart, and what belongs together is
    counted as two.

    Examples
    --------
    >>> from deep._util.names import visible_form
    >>> visible_form("e\u0301te\u0301 "), visible_form("news")
    ('été', 'news')
    """
    if not ODD_CHARACTER.search(name):
        return name  # nearly all
    for character in {*name}:  # each once: names may be whole texts
        if unicodedata.category(character) == "Cf" or character in INVISIBLE_LETTERS:
            name = name.replace(character, "")
    return " ".join(unicodedata.normalize("NFC", name).split())


# Names that others give to the column of labels.
LABEL_NAMES = ("gold", "target", "y")


def intended_column(name: str, known: Collection[str]) -> str | None:
    """Return the known column that a name seems to mean: its own but for case and outer blanks, or another for labels.

    Examples
    --------
    >>> [intended_column(name, ("label", "dataset")) for name in ("Label ", "gold", "label", "strict")]
    ['label', 'label', None, None]
    """
    plain = name.strip().casefold()
    if "label" in known and plain in LABEL_NAMES:
        return "label"
    return plain if plain in known and plain != name else None


def check_misspelled(names: Iterable[str], known: Collection[str], param: str, leave_out: str, place: str = "") -> None:
    """Raise where a column that would be a voter seems to mean a known one: a label that votes is always right."""
    for name in names:
        if (meant := intended_column(name, known)) is not None:
            raise InputError(
                f"`{param}` must use deep's column names. Got {name!r}{place}, which may be the column "
                f"{meant!r}. Rename it, or {leave_out.format(name=name)}."
            )


def check_lookalikes(names: Iterable[str], param: str) -> None:
    """Raise an InputError where two names differ and look the same."""
    forms: dict[str, str] = {}
    for name in names:
        before = forms.setdefault(visible_form(name), name)
        if before != name:
            raise InputError(
                f"`{param}` must have names that look different. Got {before!a} and {name!a}. "
                "Spell equal names alike, and rename the others."
            )


_VOTER = re.compile(r"(?P<name>[^@/]+)@(?P<version>[0-9a-f]{8})(?:/(?P<model>.+))?")


class VoterName(NamedTuple):
    """The parts of a voter's name; a name of another form stands for itself."""

    name: str
    version: str | None = None
    model: str | None = None


def voter_name(name: str, version: str, model: str | None = None) -> str:
    """Return the name of the column that a judge fills, with the LLM or the encoder that it runs.

    Examples
    --------
    >>> from deep.judges import parse_voter, voter_name
    >>> voter_name("strict", "0a1b2c3d" * 8, "small"), voter_name("lexical-dates", "0a1b2c3d" * 8)
    ('strict@0a1b2c3d/small', 'lexical-dates@0a1b2c3d')
    >>> parse_voter("strict@0a1b2c3d/small")
    VoterName(name='strict', version='0a1b2c3d', model='small')
    """
    return f"{name}@{version[:8]}" + ("" if model is None else f"/{model}")


@lru_cache  # each answer of a judge asks for the parts of its one name
def parse_voter(voter: str) -> VoterName:
    """Return the parts of a voter's name."""
    result = _VOTER.fullmatch(voter)
    return VoterName(voter) if result is None else VoterName(**result.groupdict())


def file_name(name: str) -> str:
    """Return a name of a file for any name: readable, its own, and safe on every system.

    A name of small letters, digits, dots, dashes and underscores stays as it is. Any other gets eight digits of its
    SHA-256, so that no two names share a file, also where a system takes ``A`` and ``a`` for the same.

    Parameters
    ----------
    name : str
        Any text, such as a dataset's name.

    Returns
    -------
    str
        At most 80 characters of ``a-zA-Z0-9._-``.

    Examples
    --------
    >>> from deep._util.names import file_name
    >>> file_name("aggrefact-xsum")
    'aggrefact-xsum'
    >>> file_name("framing/co"), file_name("..")
    ('framing-co-38e7e141', '5ec1f7e7')
    """
    if SAFE_FILE_NAME.fullmatch(name) and not RESERVED_FILE_NAME.fullmatch(name) and not DIGESTED_NAME.fullmatch(name):
        return name
    # Two names that read alike, as `a b` and `a/b`, still get two files.
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("_-")[:70].rstrip("_-")
    return f"{readable}-{digest}" if readable else digest


@cache
def _published_names() -> dict[str, dict[str, str]]:
    """Return the table of names of published datasets."""
    return tomllib.loads(files("deep._util").joinpath("names.toml").read_text(encoding="utf-8"))


def canonical_name(name: str) -> str:
    """Return the registered spelling of a dataset's name, in lower case with hyphens."""
    # Published names differ in case and in what joins their words: `AggreFact_CNN`, `aggrefact-cnn`.
    plain = re.sub(r"[\s_/.-]+", "-", name.strip().casefold())
    return str(_published_names()["spellings"].get(plain, plain))


def family_of(dataset: str) -> str:
    """Return the family that a dataset belongs to: datasets of one benchmark, made in one way.

    Parameters
    ----------
    dataset : str
        In any of its spellings.

    Returns
    -------
    str
        The dataset's own name where no family is registered.

    Examples
    --------
    >>> from deep._util.names import family_of
    >>> family_of("tofueval-mediasum"), family_of("TofuEval-MeetB"), family_of("ragtruth")
    ('tofueval', 'tofueval', 'ragtruth')
    """
    return str(_published_names()["families"].get(canonical_name(dataset), dataset))


def resolve_dataset(name: str, known: Iterable[str], *, param: str = "dataset") -> str:
    """Return the one of `known` that `name` means.

    Tried in turn: the very name, the name in another case or spelling, a registered short name, a
    beginning that only one name has, a part that only one name has.

    Parameters
    ----------
    name : str
        As typed.
    known : iterable of str
        The datasets that are there.
    param : str
        What to call the parameter in an error.

    Returns
    -------
    str
        A member of `known`, as spelled there.

    Raises
    ------
    InputError
        Nothing matches, or more than one does; the message lists the names, sorted.

    Examples
    --------
    >>> from deep._util.names import resolve_dataset
    >>> resolve_dataset("aggrefact", ["AggreFact-CNN", "AggreFact-XSum", "wice"])
    'AggreFact-XSum'
    >>> resolve_dataset("wi", ["AggreFact-CNN", "AggreFact-XSum", "wice"])
    'wice'
    """
    names = sorted(set(known))
    for matches in _name_matchers(name):
        result = [candidate for candidate in names if matches(candidate)]
        if len(result) == 1:
            return result[0]
        if result:
            options = ", ".join(result)
            raise InputError(f"`{param}` must name one dataset. Got {name!r}, which could be any of {options}.")
    raise InputError(f"`{param}` must be one of {', '.join(names)}. Got {name!r}.")


def _name_matchers(name: str) -> list[Callable[[str], bool]]:
    """Return the ways to read a name, the strictest first."""
    plain = canonical_name(name)
    short = _published_names()["short"].get(plain, plain)
    letters: list[Callable[[str], bool]] = [
        lambda candidate: candidate == name,
        lambda candidate: candidate.casefold() == name.casefold(),
    ]
    if not plain.strip("-"):
        return letters
    return [
        *letters,
        lambda candidate: canonical_name(candidate) == plain,
        lambda candidate: canonical_name(candidate) == short,
        lambda candidate: canonical_name(candidate).startswith(plain),
        lambda candidate: plain in canonical_name(candidate),
    ]
