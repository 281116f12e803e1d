from ._fit import fit as fit
from ._fit import fit_asked as fit_asked
from ._regimes import SIZES as SIZES
from ._regimes import SharedWork as SharedWork
from ._regimes import training_groups as training_groups
