from ._places import Kind as Kind
from ._reader import AnswerForm as AnswerForm
from ._reader import Output as Output
from ._reader import why_none as why_none
from ._reader import why_unusable as why_unusable
from ._words import normalise_label as normalise_label
