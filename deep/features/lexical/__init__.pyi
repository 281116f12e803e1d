from ._base import LexicalCheck as LexicalCheck
from ._registry import LEXICAL as LEXICAL
from ._words import WORD_LISTS as WORD_LISTS
