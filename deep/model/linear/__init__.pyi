from ._linear import Linear as Linear
from ._unlabeled import Unlabeled as Unlabeled
from ._unlabeled import fit_unlabeled as fit_unlabeled
