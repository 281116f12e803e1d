"""The commands of deep, and what they compute as functions.

Names are imported on first use: a command that asks prompts need not load every ensembler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deep.experiments.loo._run import LooResult, leave_one_dataset_out
    from deep.experiments.loo._settings import Settings

__all__ = ["LooResult", "Settings", "leave_one_dataset_out"]

_HOME = {
    "LooResult": "deep.experiments.loo._run",
    "Settings": "deep.experiments.loo._settings",
    "leave_one_dataset_out": "deep.experiments.loo._run",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deep.experiments' has no attribute {name!r}")
