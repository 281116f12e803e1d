"""Where the sentences of an English text end: rules in Python alone, which `deep export --to python` can write down."""

import re

from deep.features.lexical._words import FUNCTION_WORDS, bag

STOP = re.compile(
    r"[.!?\u2026]+(?:[\"'\u201d\u2019\u00bb)\]]*\s+)?"  # with quotation marks and white space behind it, or glued
    r"|[\u3002\uff01\uff1f\u0964\u0965]+"  # scripts that need no blank
    r"|\n\s*\n\s*"  # a blank line
)
"""Where a sentence may end. No run of characters is gone through twice, however long it is."""

GLUED = re.compile(r"[a-z]{2}\.[A-Z][a-z]")
"""A full stop that lacks its blank."""

NEVER_LAST = bag(
    """
    adm approx asst brig capt cf cmdr col dr e.g est fig figs gen gov hon i.e lt maj messrs mr mrs ms msgr mt mx pp
    pres prof pvt rep reps rev sen sens sgt ste supt viz vol vols vs
    """
)
"""Abbreviations behind which a sentence goes on."""

SELDOM_LAST = bag(
    """
    al apr assn aug ave bldg blvd bros calif co corp dec dept dist div ed eds etc feb ft inc intl jan jr jul jun llc
    ltd mar natl nov oct rd sep sept sr st univ
    """
)
"""Abbreviations behind which a sentence ends only where a function word follows: "Acme Inc. The ..."."""

BEFORE_NUMBERS = bag("art ch no nos p par sec")
"""Abbreviations only before a number: "No. 5", and "He said no. Others came"."""

LONGEST_ABBREVIATION = 12
"""Characters, more than enough."""

WORD_BEHIND = re.compile(r"[^\W\d_]{1,12}(?:['\u2019][^\W\d_]{1,12})?")


def sentence_ends(text: str) -> list[int]:
    """Return the position behind every sentence of a text and the white space that follows it.

    Examples
    --------
    >>> from deep.features.lexical._sentences import sentence_ends
    >>> sentence_ends("Dr. Wu paid 3.5 million to Acme Inc. in May. Really?  Yes.")
    [45, 54, 58]
    """
    ends = [end for stop in STOP.finditer(text) if (end := stop.end()) < len(text) and _is_end(text, stop[0], end)]
    return [*ends, len(text)]


def _is_end(text: str, stop: str, end: int) -> bool:
    """Return whether a sentence ends where `stop` does."""
    if stop[0] not in ".!?\u2026":
        return True
    if not stop[-1].isspace():
        return stop == "." and GLUED.match(text, max(0, end - 3)) is not None
    if text[end].islower():
        return stop.count("\n") > 1
    return stop.rstrip() != "." or not _is_abbreviated(text, end - len(stop), end)


def _is_abbreviated(text: str, stop: int, behind: int) -> bool:
    """Return whether the full stop at `stop` belongs to an abbreviation within a sentence."""
    before = text[max(0, stop - LONGEST_ABBREVIATION) : stop].split()
    word = before[-1].lstrip("([\"'\u201c\u2018") if before else ""
    lower = word.lower()
    if lower in BEFORE_NUMBERS:
        return text[behind].isdecimal()
    if lower in SELDOM_LAST or (len(word) == 1 and word.isupper()) or (word[1:2] == "." and lower not in NEVER_LAST):
        following = WORD_BEHIND.match(text, behind)
        return following is None or following[0].lower() not in FUNCTION_WORDS
    return lower in NEVER_LAST
