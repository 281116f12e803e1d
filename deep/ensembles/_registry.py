"""The ensemblers by the names that options and files use."""

from deep import ensembles
from deep.base import BaseEnsembler
from deep.ensembles._names import ENSEMBLER_NAMES, NAMED_ONLY

ENSEMBLERS: dict[str, type[BaseEnsembler]] = {
    **{name: getattr(ensembles, name) for name in ENSEMBLER_NAMES if name not in NAMED_ONLY},
    "snorkel-labelmodel": ensembles.SnorkelLabelModel,
}
"""The ensemblers by name, in the order of `ENSEMBLER_NAMES`."""
