"""Import what workers need, in the process that they are forked from.

Each worker computes in one thread, for there are as many of them as cores. The libraries read that as they load.
"""

import os
from contextlib import suppress
from importlib import import_module

from deep.calibration import ALL_CALIBRATORS
from deep.ensembles import ENSEMBLERS

# The variables by which libraries learn how many threads they may start.
THREAD_VARIABLES = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

# A name of every package, for deep's own load nothing before one is asked for.
CLASSES_USED = {
    "catboost": "CatBoostClassifier",
    "lightgbm": "train",
    "xgboost": "train",
    "deep.evaluate": "hold_out",
    "deep.model": "ChainTask",
}

os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
for package, name in CLASSES_USED.items():
    with suppress(ModuleNotFoundError):  # of an extra
        getattr(import_module(package), name)
for registry in (ALL_CALIBRATORS, ENSEMBLERS):
    [*registry.values()]  # all classes are loaded
