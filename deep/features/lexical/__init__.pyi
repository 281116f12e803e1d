from ._base import LexicalCheck as LexicalCheck
from ._registry import LEXICAL as LEXICAL
