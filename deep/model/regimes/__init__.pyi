from ._fit import AVERAGE as AVERAGE
from ._fit import POOL as POOL
from ._fit import fit as fit
from ._pool import training_groups as training_groups
