"""The names by which options and files call what this package holds."""

from deep.features.lexical._base import LexicalCheck
from deep.features.lexical._dates import Dates
from deep.features.lexical._entities import Entities
from deep.features.lexical._negation import Modality, Negation, Restriction
from deep.features.lexical._numbers import Numbers, Units
from deep.features.lexical._opposites import Opposites
from deep.features.lexical._overlap import Coverage, NovelRun, SentenceOverlap
from deep.features.lexical._quotes import Quotes

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
