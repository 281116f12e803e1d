"""From votes to what an ensembler learns on: cells, voter analysis, and prompt subset selection."""

from deep.base import BasePromptSelector
from deep.features._agreement import agreement_interval, cohen_kappa, fleiss_kappa, krippendorff_alpha
from deep.features._analysis import analyze_votes, effective_votes, error_correlation
from deep.features._cells import Cells, distinct_patterns
from deep.features._exhaustive import Exhaustive
from deep.features._mrmr import MRMR
from deep.features._rfe import RFE

__all__ = [
    "MRMR",
    "RFE",
    "SELECTORS",
    "Cells",
    "Exhaustive",
    "agreement_interval",
    "analyze_votes",
    "cohen_kappa",
    "distinct_patterns",
    "effective_votes",
    "error_correlation",
    "fleiss_kappa",
    "krippendorff_alpha",
]

SELECTORS: dict[str, type[BasePromptSelector]] = {"exhaustive": Exhaustive, "mrmr": MRMR, "rfe": RFE}
"""Every selector by the name that a command knows it by."""
