"""The names by which options and files call what this package holds."""

from deep.features.lexical._base import LexicalCheck
from deep.features.lexical._facts import Dates, Entities, Quotes
from deep.features.lexical._numbers import Numbers, Units
from deep.features.lexical._statements import (
    Coverage,
    Modality,
    Negation,
    NovelRun,
    Opposites,
    Restriction,
    SentenceOverlap,
)

LEXICAL: dict[str, type[LexicalCheck]] = {
    check.name: check
    for check in (
        Coverage,
        Dates,
        Entities,
        Modality,
        Negation,
        NovelRun,
        Numbers,
        Opposites,
        Quotes,
        Restriction,
        SentenceOverlap,
        Units,
    )
}
"""Every lexical check by the name that a command knows it by."""
