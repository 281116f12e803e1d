"""The ensemblers by the names that options and files use."""

from deep import ensembles
from deep.base import BaseEnsembler
from deep.ensembles._names import ENSEMBLER_NAMES

ENSEMBLERS: dict[str, type[BaseEnsembler]] = {name: getattr(ensembles, name) for name in ENSEMBLER_NAMES}
"""The ensemblers by name, in the order of `ENSEMBLER_NAMES`."""
