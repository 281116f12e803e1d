from ._command import NOTICE as NOTICE
from ._command import SIMULATED as SIMULATED
from ._command import load as load
from ._command import main as main
from ._command import run_all as run_all
from ._run import leave_one_dataset_out as leave_one_dataset_out
from ._settings import LooOptions as LooOptions
