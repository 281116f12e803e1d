"""Lexical labeling functions: what words alone tell, at once, for nothing, and without a model."""

from deep.features.lexical._base import LexicalCheck, label_all
from deep.features.lexical._dates import Dates
from deep.features.lexical._entities import Entities
from deep.features.lexical._negation import Modality, Negation, Restriction
from deep.features.lexical._numbers import Numbers, Units
from deep.features.lexical._opposites import Opposites
from deep.features.lexical._overlap import Coverage, NovelRun, SentenceOverlap
from deep.features.lexical._quotes import Quotes

__all__ = ["LEXICAL", "LexicalCheck", "label_all"]

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
