from ._chain import AVERAGE as AVERAGE
from ._chain import SIZES as SIZES
from ._chain import STACK as STACK
from ._chain import ChainOptions as ChainOptions
from ._defaults import training_groups as training_groups
from ._fit import SharedWork as SharedWork
from ._fit import fit as fit
from ._fit import fit_asked as fit_asked
