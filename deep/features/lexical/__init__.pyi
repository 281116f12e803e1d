from ._base import LexicalCheck as LexicalCheck
from ._embed import lexical_code as lexical_code
from ._registry import LEXICAL as LEXICAL
