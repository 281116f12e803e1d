from ._base import LexicalCheck as LexicalCheck
from ._base import label_all as label_all
from ._registry import LEXICAL as LEXICAL
