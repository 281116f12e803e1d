"""Lexical labeling functions: what words alone tell, at once, for nothing, and without a model."""

from deep.features.lexical import _statements
from deep.features.lexical._base import WORD_LISTS, LexicalCheck
from deep.features.lexical._facts import Dates, Entities, Numbers, Quotes, Units

__all__ = ["LEXICAL", "WORD_LISTS", "LexicalCheck"]

# Every lexical check by the name that a command knows it by.
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
