"""The names by which options and files call what this package holds."""

from deep.base import BasePromptSelector
from deep.features._exhaustive import Exhaustive
from deep.features._mrmr import MRMR, MRMRSelection
from deep.features._rfe import RFE

SELECTORS: dict[str, type[BasePromptSelector]] = {
    "exhaustive": Exhaustive,
    "mrmr": MRMR,
    "mrmr-selection": MRMRSelection,
    "rfe": RFE,
}
"""Every selector by the name that a command knows it by."""
