from .exceptions import DeepError as DeepError
from .exceptions import InputError as InputError
from .records import ABSTAIN as ABSTAIN
from .records import Example as Example
from .records import Judgment as Judgment
from .records import LabelingFunction as LabelingFunction
from .records import VoteMatrix as VoteMatrix

__version__: str
