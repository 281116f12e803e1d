"""Lexical labeling functions: what words alone tell, at once, for nothing, and without a model."""

from deep.features.lexical import _statements
from deep.features.lexical._base import LexicalCheck
from deep.features.lexical._facts import Dates, Entities, Quotes
from deep.features.lexical._numbers import Numbers, Units
from deep.features.lexical._words import WORD_LISTS

__all__ = ["LEXICAL", "WORD_LISTS", "LexicalCheck"]

LEXICAL: dict[str, type[LexicalCheck]] = {
    check.name: check
    for check in (
        _statements.Coverage,
        Dates,
        Entities,
        _statements.Modality,
        _statements.Negation,
        _statements.NovelRun,
        Numbers,
        _statements.Opposites,
        Quotes,
        _statements.Restriction,
        _statements.SentenceOverlap,
        Units,
    )
}
"""Every lexical check by the name that a command knows it by."""
