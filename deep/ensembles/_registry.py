"""The ensemblers by the names that options and files use."""

from deep import ensembles
from deep._util.entry_points import ENSEMBLER, ClassRegistry
from deep.base import BaseEnsembler
from deep.ensembles._names import NAMED_ONLY, OWN_NAMES

_CLASSES = {NAMED_ONLY: "SnorkelLabelModel"}

ENSEMBLERS: ClassRegistry[type[BaseEnsembler]] = ClassRegistry(
    {name: getattr(ensembles, _CLASSES.get(name, name)) for name in OWN_NAMES}, ENSEMBLER, BaseEnsembler
)
"""The ensemblers by name, in the order of `ENSEMBLER_NAMES`; those of other packages are imported when asked for."""
