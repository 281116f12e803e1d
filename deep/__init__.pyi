from .asking import ask as ask
from .asking import judge as judge
from .datasets import read_examples as read_examples
from .datasets import read_scores as read_scores
from .datasets import read_votes as read_votes
from .evaluate import adapt as adapt
from .evaluate import check as check
from .evaluate import estimate as estimate
from .exceptions import DeepError as DeepError
from .exceptions import InputError as InputError
from .experiments.loo import loo as loo
from .model import Model as Model
from .model import Stack as Stack
from .model import fit as fit
from .model import load as load
from .records import ABSTAIN as ABSTAIN
from .records import Example as Example
from .records import Judgment as Judgment
from .records import VoteMatrix as VoteMatrix
from .report import report as report

__version__: str
