"""deep: one calibrated P(consistent) from the votes of several weak judges.

Names are imported on first use, so that ``import deep`` and ``deep --help`` cost next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deep._records import ABSTAIN, Example, Judgment, LabelingFunction, VoteMatrix
    from deep.exceptions import DeepError, InputError

__version__ = "0.1.0"

_HOME = {
    "ABSTAIN": "deep._records",
    "DeepError": "deep.exceptions",
    "Example": "deep._records",
    "InputError": "deep.exceptions",
    "Judgment": "deep._records",
    "LabelingFunction": "deep._records",
    "VoteMatrix": "deep._records",
}

__all__ = [
    "ABSTAIN",
    "DeepError",
    "Example",
    "InputError",
    "Judgment",
    "LabelingFunction",
    "VoteMatrix",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
