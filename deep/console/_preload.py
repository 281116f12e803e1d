"""Import what workers need, in the process that they are forked from.

Each worker computes in one thread, for there are as many of them as cores. The libraries read that as they load.
"""

import os
from importlib import import_module

THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

MODULES = ("catboost", "lightgbm", "xgboost", "deep.calibration._registry", "deep.ensembles._registry")
"""The libraries of ensemblers, and those of calibrators."""

os.environ.update(dict.fromkeys(THREADS, "1"))
for name in MODULES:
    import_module(name)
